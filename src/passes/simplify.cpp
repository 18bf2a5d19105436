#include <map>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace muster::passes {

using graph::Graph;
using graph::Node;
using graph::Op;
using graph::Value;

namespace {

/// An older value with the same bits as node `n`, when the op does nothing.
std::optional<Value> same_as_operand(const Graph& from, const Node& node) {
  switch (node.op) {
    case Op::convert:
    case Op::reshape:
    case Op::broadcast:
      if (from.type(node.inputs[0]) == node.types[0]) return node.inputs[0];
      return std::nullopt;
    case Op::transpose:
      for (size_t i = 0; i < node.attrs.axes.size(); ++i)
        if (node.attrs.axes[i] != static_cast<int64_t>(i)) return std::nullopt;
      return node.inputs[0];
    case Op::slice:
      if (from.type(node.inputs[0]) == node.types[0]) return node.inputs[0];
      return std::nullopt;
    case Op::concat:
      if (node.inputs.size() == 1) return node.inputs[0];
      return std::nullopt;
    case Op::mul:
    case Op::div: {
      const Node& right = from.at(node.inputs[1]);
      const Node& factor = right.op == Op::broadcast ? from.at(right.inputs[0]) : right;
      if (factor.op == Op::constant && factor.attrs.value == 1.0) return node.inputs[0];
      return std::nullopt;
    }
    default: return std::nullopt;
  }
}

/// What makes two nodes equal: everything but their place.
std::string key_of(const Node& node, const std::vector<Value>& inputs) {
  Graph one;
  Node copy = node;
  copy.inputs = inputs;
  one.nodes.push_back(std::move(copy));
  return to_string(one);
}

Graph without_dead_nodes(const Graph& graph) {
  const std::vector<bool> live = live_nodes(graph);
  Rewriter rewriter(graph);
  for (int32_t n = 0; n < static_cast<int32_t>(graph.nodes.size()); ++n)
    if (live[static_cast<size_t>(n)]) rewriter.copy(n);
  return rewriter.finish();
}

}  // namespace

Graph simplify(const Graph& graph) {
  const std::vector<bool> live = live_nodes(graph);
  Rewriter rewriter(graph);
  std::map<std::string, Value> seen;
  for (int32_t n = 0; n < static_cast<int32_t>(graph.nodes.size()); ++n) {
    if (!live[static_cast<size_t>(n)]) continue;
    const Node& node = graph.nodes[static_cast<size_t>(n)];
    if (const auto same = same_as_operand(graph, node)) {
      rewriter.set({n, 0}, rewriter.at(*same));
      continue;
    }
    if (node.op == Op::parameter || node.op == Op::input) {
      rewriter.copy(n);
      continue;
    }
    std::vector<Value> inputs;
    for (const Value v : node.inputs) inputs.push_back(rewriter.at(v));
    const auto [place, fresh] = seen.try_emplace(key_of(node, inputs));
    if (fresh) place->second = rewriter.emit_like(n, std::move(inputs));
    for (size_t k = 0; k < node.types.size(); ++k)
      rewriter.set({n, static_cast<int32_t>(k)}, {place->second.node, static_cast<int32_t>(k)});
  }
  return without_dead_nodes(rewriter.finish());  // folding leaves operands that nobody reads
}

}  // namespace muster::passes
