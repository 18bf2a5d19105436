#include <algorithm>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace muster::passes {

using graph::Attrs;
using graph::Graph;
using graph::Node;
using graph::Op;
using graph::Value;

namespace {

struct LinearMatch {
  Value x, weight, bias;
  int32_t gelu = -1;  // the node that the activation comes from
};

/// add(dot(x, w^T), broadcast(bias)), the dot used nowhere else.
std::optional<LinearMatch> match_linear(const Graph& g, const Uses& uses, int32_t n) {
  const Node& add = g.nodes[static_cast<size_t>(n)];
  if (add.op != Op::add) return std::nullopt;
  const Node& dot = g.at(add.inputs[0]);
  const Node& bias = g.at(add.inputs[1]);
  if (dot.op != Op::dot || dot.attrs.transpose_a || !dot.attrs.transpose_b || uses.of(add.inputs[0]).size() != 1) return std::nullopt;
  if (bias.op != Op::broadcast || bias.attrs.axes != std::vector<int64_t>{1}) return std::nullopt;
  LinearMatch m{dot.inputs[0], dot.inputs[1], bias.inputs[0]};
  for (const int32_t user : uses.of({n, 0})) {
    if (user < 0 || g.nodes[static_cast<size_t>(user)].op != Op::gelu) continue;
    m.gelu = user;
    break;
  }
  return m;
}

struct NormMatch {
  Value x, residual;
  double rate = 0;
  uint32_t stream = 0;
};

/// layer_norm(add(residual, dropout(x))) in either order; without a dropout the rate is 0. Every other user of the sum comes later.
std::optional<NormMatch> match_norm(const Graph& g, const Uses& uses, int32_t n) {
  const Node& norm = g.nodes[static_cast<size_t>(n)];
  if (norm.op != Op::layer_norm) return std::nullopt;
  const Value sum = norm.inputs[0];
  const Node& add = g.at(sum);
  if (add.op != Op::add) return std::nullopt;
  for (const int32_t user : uses.of(sum))
    if (user >= 0 && user < n) return std::nullopt;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const Node& dropped = g.at(add.inputs[side]);
    if (dropped.op != Op::dropout || uses.of(add.inputs[side]).size() != 1) continue;
    return NormMatch{dropped.inputs[0], add.inputs[1 - side], dropped.attrs.rate, dropped.attrs.stream};
  }
  return NormMatch{add.inputs[0], add.inputs[1], 0, 0};
}

}  // namespace

Graph fuse(const Graph& graph) {
  const Uses uses(graph);
  const auto count = static_cast<int32_t>(graph.nodes.size());
  // The sums that a norm takes over are written with the norm, not where they stood.
  std::vector<bool> absorbed(graph.nodes.size());
  for (int32_t n = 0; n < count; ++n)
    if (match_norm(graph, uses, n)) absorbed[static_cast<size_t>(graph.nodes[static_cast<size_t>(n)].inputs[0].node)] = true;

  Rewriter rewriter(graph);
  for (int32_t n = 0; n < count; ++n) {
    const Node& node = graph.nodes[static_cast<size_t>(n)];
    if (absorbed[static_cast<size_t>(n)]) continue;
    if (const auto norm = match_norm(graph, uses, n)) {
      Attrs attrs;
      attrs.value = node.attrs.value, attrs.rate = norm->rate, attrs.stream = norm->stream;
      const Value y = rewriter.builder().emit(
          Op::residual_layer_norm,
          {rewriter.at(norm->x), rewriter.at(norm->residual), rewriter.at(node.inputs[1]), rewriter.at(node.inputs[2])}, attrs);
      rewriter.set(node.inputs[0], {y.node, 1});
      rewriter.set({n, 0}, y), rewriter.set({n, 1}, {y.node, 2}), rewriter.set({n, 2}, {y.node, 3});
      continue;
    }
    if (const auto linear = match_linear(graph, uses, n)) {
      Attrs attrs;
      attrs.activation = linear->gelu >= 0;
      attrs.approximate = attrs.activation && graph.nodes[static_cast<size_t>(linear->gelu)].attrs.approximate;
      const Value y =
          rewriter.builder().emit(Op::linear, {rewriter.at(linear->x), rewriter.at(linear->weight), rewriter.at(linear->bias)}, attrs);
      rewriter.set({n, 0}, attrs.activation ? Value{y.node, 1} : y);
      if (attrs.activation) rewriter.set({linear->gelu, 0}, y);
      continue;
    }
    if (rewriter.written({n, 0})) continue;  // the gelu of a linear
    rewriter.copy(n);
  }
  return simplify(rewriter.finish());
}

}  // namespace muster::passes
