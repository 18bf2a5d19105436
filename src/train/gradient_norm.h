// The norm of all gradients together, and the factor that clips it.
#pragma once
#include "core/threads.h"
#include "models/weights.h"

namespace muster::train {

/// sqrt(sum of squares) over every element of every tensor, summed in f64 in an order that does not depend on threads.
/// Not finite exactly when an element is not.
double global_norm(const models::Parameters& gradients, ThreadPool& threads);

/// What gradients are multiplied by so that their norm is at most max_norm, as torch.nn.utils.clip_grad_norm_:
/// min(1, max_norm / (norm + 1e-6)); 1 when max_norm is 0.
double clip_factor(double norm, double max_norm);

}  // namespace muster::train
