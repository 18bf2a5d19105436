// AdamW or LAMB over all parameters of a model: one compiled program of an update per parameter, in place.
// Formulas: Loshchilov and Hutter 2019, as torch.optim.AdamW; You et al. 2020 (backend/cpu/kernels.h). The learning rate comes from
// schedule.h, clipping from gradient_norm.h.
#pragma once
#include <cstdint>
#include <memory>

#include "core/threads.h"
#include "graph/graph.h"
#include "models/weights.h"
#include "runtime/compile.h"
#include "train/arguments.h"

namespace muster::train {

/// The update of every parameter: parameters NAME, inputs "grad:NAME", "m:NAME", "v:NAME" and "scalars" f32 [4] (learning rate,
/// 1 - beta1^step, 1 - beta2^step, factor of the gradients); outputs "NAME", "m:NAME", "v:NAME".
graph::Graph build_optimizer(const models::Parameters& parameters, const TrainingArguments& arguments);

class OptimizerStep {
 public:
  /// Updates the memory of `parameters` in place. `threads` outlives the object.
  OptimizerStep(const models::Parameters& parameters, const TrainingArguments& arguments, const runtime::Options& options,
                ThreadPool& threads);

  /// `gradients`: one tensor a parameter, under its name, the same tensors each time. step: counted from 1.
  void update(const models::Parameters& gradients, int64_t step, double learning_rate, double gradient_factor);

  [[nodiscard]] runtime::Session& session() { return *session_; }
  /// The moments, under the parameters' names. A resumed run copies into them.
  [[nodiscard]] const models::Parameters& first_moments() const { return first_; }
  [[nodiscard]] const models::Parameters& second_moments() const { return second_; }

 private:
  double beta1_, beta2_;
  models::Parameters first_, second_;
  runtime::TensorMap inputs_, outputs_;
  std::unique_ptr<runtime::Session> session_;
};

}  // namespace muster::train
