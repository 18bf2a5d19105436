// What a node costs on paper: operations and bytes, from its types alone. How long it really took: runtime/profile.h.
#pragma once
#include <string>

#include "graph/graph.h"

namespace muster::graph {

struct Cost {
  double flops = 0;  // a multiply-add is two; a function like exp or erf counts as 10
  double bytes = 0;  // operands read once, results written once
};

/// Sequences are taken to be of one length, tokens / sequences.
Cost cost_of(const Graph& graph, int32_t node, const SymbolValues& symbols);

/// What the node does, in words: "dot + add + gelu", "layer_norm + mul", "attention".
std::string describe(const Node& node);

}  // namespace muster::graph
