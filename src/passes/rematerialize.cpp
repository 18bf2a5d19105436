#include <algorithm>
#include <vector>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace muster::passes {

using graph::Graph;
using graph::Node;
using graph::Op;
using graph::Value;

namespace {

/// A product that sums over the rows of its operands: a weight's gradient.
bool sums_over_rows(const Graph& g, const Node& node) {
  return node.op == Op::dot && node.attrs.transpose_a && !node.attrs.transpose_b && !g.type(node.inputs[0]).dims[0].fixed();
}

class Rematerialize {
 public:
  explicit Rematerialize(const Graph& graph) : g_(graph), uses_(graph), rewriter_(graph) {}

  Graph run() {
    for (int32_t n = 0; n < static_cast<int32_t>(g_.nodes.size()); ++n) {
      const Node& node = g_.nodes[static_cast<size_t>(n)];
      if (!sums_over_rows(g_, node)) {
        rewriter_.copy(n);
        continue;
      }
      std::vector<Value> in;
      bool again = false;  // one operand a product
      for (const Value v : node.inputs) {
        const bool now = !again && worth_it(v);
        again = again || now;
        in.push_back(now ? made_again(v) : rewriter_.at(v));
      }
      rewriter_.set({n, 0}, rewriter_.emit_like(n, std::move(in)));
    }
    return rewriter_.finish();
  }

 private:
  /// Cheap to make from what the backward pass keeps anyway, and read by nothing else that late.
  [[nodiscard]] bool worth_it(Value v) const {
    const Node& node = g_.at(v);
    if (v.output != 0 || (node.op != Op::gelu && node.op != Op::layer_norm)) return false;
    const auto& users = uses_.of(v);
    const bool others =
        std::any_of(users.begin(), users.end(), [&](int32_t n) { return n >= 0 && !sums_over_rows(g_, g_.nodes[static_cast<size_t>(n)]); });
    const bool result = std::any_of(users.begin(), users.end(), [](int32_t n) { return n < 0; });
    const Op kept_by = node.op == Op::gelu ? Op::gelu_grad : Op::layer_norm_grad;
    const auto& readers = uses_.of(node.inputs[0]);
    return others && !result &&
           std::any_of(readers.begin(), readers.end(), [&](int32_t n) { return n >= 0 && g_.nodes[static_cast<size_t>(n)].op == kept_by; });
  }

  Value made_again(Value v) {
    const Node& node = g_.at(v);
    graph::Builder& b = rewriter_.builder();
    const Value x = rewriter_.at(node.inputs[0]);
    if (node.op == Op::gelu) return rewriter_.emit_like(v.node, {x});
    // As the forward's formula, operation by operation (backend/cpu/schedule.cpp).
    const std::vector<graph::Dim> dims = node.types[0].dims;
    const auto along = [&](Value row, int64_t axis) { return b.broadcast(row, dims, {axis}); };
    const Value d = b.sub(x, along(rewriter_.at({v.node, 1}), 0)), scaled = b.mul(d, along(rewriter_.at({v.node, 2}), 0));
    return b.add(b.mul(scaled, along(rewriter_.at(node.inputs[1]), 1)), along(rewriter_.at(node.inputs[2]), 1));
  }

  const Graph& g_;
  Uses uses_;
  Rewriter rewriter_;
};

}  // namespace

Graph rematerialize(const Graph& graph) { return Rematerialize(graph).run(); }

}  // namespace muster::passes
