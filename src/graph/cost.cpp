#include "graph/cost.h"

#include <algorithm>

namespace muster::graph {
namespace {

double elements(const Type& type, const SymbolValues& symbols) {
  double n = 1;
  for (const Dim& d : type.dims) n *= static_cast<double>(d.at(symbols));
  return n;
}

/// Operations of one element of a result.
double per_element(Op op) {
  switch (op) {
    case Op::exp:
    case Op::log:
    case Op::tanh:
    case Op::erf: return 10;
    case Op::gelu:
    case Op::gelu_grad: return 20;
    case Op::layer_norm: return 8;
    case Op::layer_norm_grad: return 14;
    case Op::softmax_cross_entropy:
    case Op::softmax_cross_entropy_grad: return 14;
    case Op::adamw: return 14;
    case Op::lamb: return 26;
    case Op::parameter:
    case Op::input:
    case Op::constant:
    case Op::broadcast:
    case Op::reshape:
    case Op::convert:
    case Op::transpose:
    case Op::slice:
    case Op::concat:
    case Op::gather: return 0;
    default: return 1;
  }
}

double flops_of(const Graph& g, const Node& node, const SymbolValues& symbols) {
  const auto size = [&](Value v) { return elements(g.type(v), symbols); };
  switch (node.op) {
    case Op::dot: {
      const Type& left = g.type(node.inputs[0]);
      const double depth = static_cast<double>(left.dims[node.attrs.transpose_a ? 0 : 1].at(symbols));
      return 2 * elements(node.types[0], symbols) * depth;
    }
    case Op::attention:
    case Op::attention_grad: {
      // Per query: a product with each key and one with each value, and in the backward these again with three more.
      const double tokens = static_cast<double>(symbols[static_cast<size_t>(Symbol::tokens)]),
                   sequences = std::max<double>(1, static_cast<double>(symbols[static_cast<size_t>(Symbol::sequences)]));
      const double width = elements(g.type(node.inputs[0]), symbols) / std::max(1.0, tokens) / 3;
      return (node.op == Op::attention ? 4 : 10) * tokens * (tokens / sequences) * width;
    }
    case Op::reduce_sum:
    case Op::reduce_max:
    case Op::scatter_add:
    case Op::softmax_cross_entropy: return per_element(node.op) * size(node.inputs[0]);
    case Op::region: {
      double total = 0;
      for (const Node& inner : node.attrs.body->nodes) total += flops_of(*node.attrs.body, inner, symbols);
      return total;
    }
    default: return per_element(node.op) * elements(node.types[0], symbols);
  }
}

}  // namespace

Cost cost_of(const Graph& graph, int32_t n, const SymbolValues& symbols) {
  const Node& node = graph.nodes[static_cast<size_t>(n)];
  Cost cost;
  if (info(node.op).kind == OpKind::leaf || node.op == Op::reshape) return cost;
  cost.flops = flops_of(graph, node, symbols);
  const auto bytes = [&](const Type& t) { return elements(t, symbols) * static_cast<double>(size_of(t.dtype)); };
  for (const Type& t : node.types) cost.bytes += bytes(t);
  for (const Value v : node.inputs) {
    // Only the rows that are looked up are read.
    if (node.op == Op::gather && v == node.inputs[0]) continue;
    cost.bytes += bytes(graph.type(v));
  }
  if (node.op == Op::gather) cost.bytes += bytes(node.types[0]);
  return cost;
}

std::string describe(const Node& node) {
  if (node.op != Op::region) return std::string(info(node.op).name);
  std::string text;
  for (const Node& inner : node.attrs.body->nodes) {
    if (info(inner.op).kind == OpKind::leaf || inner.op == Op::broadcast || inner.op == Op::convert) continue;
    text += (text.empty() ? "" : " + ") + std::string(info(inner.op).name);
  }
  return text;
}

}  // namespace muster::graph
