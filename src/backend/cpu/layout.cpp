#include "backend/cpu/layout.h"

#include <algorithm>
#include <optional>

#include "core/error.h"

namespace muster::cpu {

using graph::Graph;
using graph::Node;
using graph::Op;
using graph::Type;
using graph::Value;

namespace {

bool binary(Op op) { return op == Op::add || op == Op::sub || op == Op::mul || op == Op::div || op == Op::maximum; }
bool commutes(Op op) { return op == Op::add || op == Op::mul || op == Op::maximum; }

/// The shape class under which a broadcast can be read through, if any.
std::optional<Right> readable(const Graph& g, const Node& broadcast) {
  const Type& source = g.type(broadcast.inputs[0]);
  const Type& result = broadcast.types[0];
  if (source.rank() == 0) return Right::scalar;
  if (source.rank() != 1 || result.rank() != 2) return std::nullopt;
  return broadcast.attrs.axes[0] == 1 ? Right::row : Right::column;
}

class Planner {
 public:
  explicit Planner(const Graph& graph) : g_(graph), n_(graph.nodes.size()) {}

  Layout run() {
    layout_.places.resize(n_), layout_.skip.resize(n_), layout_.right.resize(n_), layout_.finished.resize(n_);
    for (size_t i = 0; i < n_; ++i) layout_.places[i].resize(g_.nodes[i].types.size());
    find_roots();
    look_through_broadcasts();
    count_uses();
    place_leaves();
    place_outputs();
    place_temporaries();
    for (size_t i = 0; i < n_; ++i)
      if (root_[i].node != static_cast<int32_t>(i)) layout_.places[i][0] = place(root_[i]);
    return std::move(layout_);
  }

 private:
  Place& place(Value v) { return layout_.places[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]; }

  /// The value whose memory v shares.
  Value root(Value v) const { return v.output == 0 ? root_[static_cast<size_t>(v.node)] : v; }

  void find_roots() {
    for (size_t i = 0; i < n_; ++i) {
      const Node& node = g_.nodes[i];
      const bool alias = node.op == Op::reshape;
      root_.push_back(alias ? root(node.inputs[0]) : Value{static_cast<int32_t>(i), 0});
      layout_.skip[i] = alias || node.op == Op::parameter || node.op == Op::input;
    }
  }

  void look_through_broadcasts() {
    std::vector<int> uses(n_), seen_through(n_);
    for (const Node& node : g_.nodes)
      for (const Value v : node.inputs) ++uses[static_cast<size_t>(v.node)];
    for (const graph::Output& o : g_.outputs) ++uses[static_cast<size_t>(o.value.node)];
    for (size_t i = 0; i < n_; ++i) {
      const Node& node = g_.nodes[i];
      if (!binary(node.op)) continue;
      for (const size_t side : {size_t{1}, size_t{0}}) {
        const Node& operand = g_.at(node.inputs[side]);
        if (operand.op != Op::broadcast || (side == 0 && !commutes(node.op))) continue;
        const auto shape = readable(g_, operand);
        if (!shape) continue;
        layout_.right[i] = {operand.inputs[0], *shape, side == 0};
        ++seen_through[static_cast<size_t>(node.inputs[side].node)];
        break;
      }
    }
    for (size_t i = 0; i < n_; ++i)
      if (g_.nodes[i].op == Op::broadcast && uses[i] == seen_through[i]) layout_.skip[i] = true;
  }

  /// Values that node i reads, as its step reads them.
  std::vector<Value> reads(size_t i) const {
    std::vector<Value> in = g_.nodes[i].inputs;
    if (layout_.right[i].shape != Right::same) in[layout_.right[i].swapped ? 0 : 1] = layout_.right[i].source;
    for (Value& v : in) v = root(v);
    return in;
  }

  void count_uses() {
    last_.resize(n_);
    for (size_t i = 0; i < n_; ++i) last_[i].assign(g_.nodes[i].types.size(), -1);
    for (size_t i = 0; i < n_; ++i) {
      if (layout_.skip[i]) continue;
      for (const Value v : reads(i)) last_[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)] = static_cast<int32_t>(i);
    }
  }

  void place_leaves() {
    int32_t parameters = 0, inputs = 0;
    for (size_t i = 0; i < n_; ++i) {
      if (g_.nodes[i].op == Op::parameter) layout_.places[i][0] = {Home::parameter, parameters++};
      if (g_.nodes[i].op == Op::input) layout_.places[i][0] = {Home::input, inputs++};
    }
  }

  /// Steps that can add to what their output already holds.
  bool can_accumulate(Value v) const {
    const Node& node = g_.at(v);
    switch (node.op) {
      case Op::dot: return node.types[0].dtype == DType::f32;
      case Op::scatter_add: return true;
      case Op::reduce_sum: return g_.type(node.inputs[0]).rank() == 2 && node.attrs.axes == std::vector<int64_t>{0};
      case Op::region: return true;  // what is added to is a sum over the rows
      default: return false;
    }
  }

  void place_outputs() {
    for (size_t o = 0; o < g_.outputs.size(); ++o) {
      const Value v = root(g_.outputs[o].value);
      const bool free = place(v).home == Home::none && last_[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)] < 0;
      const bool adds = accumulates(g_.type(g_.outputs[o].value));
      const auto index = static_cast<int32_t>(o);
      // An optimizer updates in place when its output is bound to the operand's own memory; others add or overwrite.
      const bool direct = info(g_.at(v).op).kind == graph::OpKind::update || !adds || (free && can_accumulate(v));
      if (place(v).home == Home::none && direct) {
        place(v) = {Home::output, index};
        layout_.finished[static_cast<size_t>(v.node)].push_back(index);
        continue;
      }
      auto& last = last_[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)];
      last = std::max(last, v.node);  // needed once more, right after it is made
      layout_.copies.push_back({v, index, v.node});
      layout_.finished[static_cast<size_t>(v.node)].push_back(index);
    }
  }

  /// Outputs a kernel can leave out when nobody reads them.
  static bool optional_output(Op op, size_t output) {
    return output > 0 && (op == Op::layer_norm || op == Op::attention || op == Op::softmax_cross_entropy);
  }

  void place_temporaries() {
    for (size_t i = 0; i < n_; ++i) {
      if (layout_.skip[i]) continue;
      for (size_t k = 0; k < g_.nodes[i].types.size(); ++k) {
        const Value v{static_cast<int32_t>(i), static_cast<int32_t>(k)};
        if (place(v).home != Home::none) continue;
        if (last_[i][k] < 0 && optional_output(g_.nodes[i].op, k)) continue;
        place(v) = {Home::arena, static_cast<int32_t>(layout_.temporaries.size())};
        layout_.temporaries.push_back({v, v.node, std::max(last_[i][k], v.node)});
      }
    }
  }

  const Graph& g_;
  size_t n_;
  Layout layout_;
  std::vector<Value> root_;
  std::vector<std::vector<int32_t>> last_;  // last reader of each value, -1: none
};

}  // namespace

bool accumulates(const Type& type) {
  if (type.rank() == 0) return false;
  return std::all_of(type.dims.begin(), type.dims.end(), [](const graph::Dim& d) { return d.fixed(); });
}

Layout lay_out(const Graph& graph) { return Planner(graph).run(); }

}  // namespace muster::cpu
