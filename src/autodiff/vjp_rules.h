// What gradient.cpp asks of vjp_rules.cpp. Nobody outside this room includes it.
#pragma once
#include <optional>
#include <vector>

#include "graph/builder.h"

namespace muster::autodiff {

/// A cotangent per operand of `node` (number `index`), of the operand's type; nothing where the operand has no derivative (row numbers,
/// labels, conditions) or `wants` is false. `ct`: cotangents of its outputs, nothing for an output that the loss does not use.
/// Throws Error(unsupported) "[vjp] <op> ...".
std::vector<std::optional<graph::Value>> vjp(graph::Builder& b, int32_t index, const graph::Node& node,
                                             const std::vector<std::optional<graph::Value>>& ct, const std::vector<bool>& wants);

}  // namespace muster::autodiff
