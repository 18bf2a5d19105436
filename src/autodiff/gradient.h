// Reverse-mode differentiation: appends the backward pass to a graph. The rules, one per op, are in vjp_rules.cpp.
#pragma once
#include <span>
#include <vector>

#include "graph/builder.h"

namespace muster::autodiff {

/// Appends nodes that compute d(loss)/d(value) for each of `wrt` and returns these values, in order.
/// `loss` must be a scalar f32. A value that the loss does not depend on gets a constant zero.
/// Throws Error(unsupported) "[vjp] <op> ..." for an op on the path that has no derivative.
std::vector<graph::Value> gradient(graph::Graph& graph, graph::Value loss, std::span<const graph::Value> wrt);

}  // namespace muster::autodiff
