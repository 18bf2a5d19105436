#include <algorithm>
#include <map>

#include "passes/groups.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace muster::passes {

using graph::Attrs;
using graph::Graph;
using graph::Node;
using graph::Op;
using graph::Type;
using graph::Value;

namespace {

class Fuse {
 public:
  explicit Fuse(const Graph& graph) : g_(graph), uses_(graph), groups_(find_groups(graph)), rewriter_(graph), of_(graph.nodes.size(), -1) {
    for (size_t k = 0; k < groups_.size(); ++k)
      for (const int32_t n : groups_[k].nodes) of_[static_cast<size_t>(n)] = static_cast<int32_t>(k);
  }

  Graph run() {
    const auto count = static_cast<int32_t>(g_.nodes.size());
    for (int32_t n = 0; n < count; ++n)
      if (node(n).op == Op::parameter || node(n).op == Op::input) rewriter_.copy(n);
    // Free nodes are written where someone outside the regions reads them. A region stands where its last node stood, or before the first
    // reader of one of its results.
    for (int32_t n = 0; n < count; ++n) {
      const int32_t k = of_[static_cast<size_t>(n)];
      if (is_free(g_, node(n))) continue;
      if (k < 0 || groups_[static_cast<size_t>(k)].nodes.back() == n) place(n);
    }
    for (const graph::Output& o : g_.outputs) place(o.value.node);
    return simplify(rewriter_.finish());
  }

 private:
  [[nodiscard]] const Node& node(int32_t n) const { return g_.nodes[static_cast<size_t>(n)]; }

  /// Writes node n, or the region it is in, after everything it reads.
  void place(int32_t n) {
    if (rewriter_.written({n, 0})) return;
    const int32_t k = of_[static_cast<size_t>(n)];
    if (k < 0) {
      for (const Value v : node(n).inputs) place(v.node);
      rewriter_.copy(n);
      return;
    }
    place_region(groups_[static_cast<size_t>(k)]);
  }

  void place_region(const Group& group) {
    auto body = std::make_shared<Graph>();
    Body inner{graph::Builder(*body), {}, {}};
    for (const int32_t n : group.nodes) {
      std::vector<Value> in;
      for (const Value v : node(n).inputs) in.push_back(inside(inner, group, v));
      const Value now = inner.b.emit(node(n).op, std::move(in), node(n).attrs, node(n).types[0]);
      for (int32_t o = 0; o < static_cast<int32_t>(node(n).types.size()); ++o) inner.became[{n, o}] = {now.node, o};
    }
    std::vector<Value> results;
    for (const int32_t n : group.nodes)
      for (int32_t o = 0; o < static_cast<int32_t>(node(n).types.size()); ++o)
        if (read_outside(group, {n, o})) results.push_back({n, o});
    for (size_t o = 0; o < results.size(); ++o) inner.b.output(std::to_string(o), inner.became.at(results[o]));

    std::vector<Value> operands;
    for (const Value v : inner.operands) {
      place(v.node);
      operands.push_back(rewriter_.at(v));
    }
    if (results.empty()) return;  // nobody reads any of it
    Attrs attrs;
    attrs.body = std::move(body);
    const Value region = rewriter_.builder().emit(Op::region, std::move(operands), std::move(attrs));
    for (size_t o = 0; o < results.size(); ++o) rewriter_.set(results[o], {region.node, static_cast<int32_t>(o)});
  }

  struct Body {
    graph::Builder b;
    std::map<Value, Value> became;
    std::vector<Value> operands;  // of the region: the values of the outer graph behind the body's inputs
  };

  /// Old value v as the body sees it: made inside, repeated when it is free, or an operand.
  Value inside(Body& inner, const Group& group, Value v) {
    if (const auto found = inner.became.find(v); found != inner.became.end()) return found->second;
    const Node& from = g_.at(v);
    Value now;
    if (from.op == Op::broadcast && is_free(g_, from)) {
      const Value operand = inside(inner, group, from.inputs[0]);
      now = inner.b.broadcast(operand, from.types[0].dims, from.attrs.axes);
    } else if (from.op == Op::constant) {
      now = inner.b.constant(from.attrs.value, from.types[0].dims, from.types[0].dtype);
    } else {
      const Type& type = g_.type(v);
      now = inner.b.input(std::to_string(inner.operands.size()), type.dtype, type.dims);
      inner.operands.push_back(v);
    }
    return inner.became[v] = now;
  }

  /// Whether something outside the group reads v, looking through broadcasts.
  [[nodiscard]] bool read_outside(const Group& group, Value v) const {
    for (const int32_t user : uses_.of(v)) {
      if (user < 0) return true;
      if (is_free(g_, node(user)) ? read_outside(group, {user, 0}) : !std::binary_search(group.nodes.begin(), group.nodes.end(), user))
        return true;
    }
    return false;
  }

  const Graph& g_;
  Uses uses_;
  std::vector<Group> groups_;
  Rewriter rewriter_;
  std::vector<int32_t> of_;
};

}  // namespace

Graph fuse(const Graph& graph) { return Fuse(graph).run(); }

}  // namespace muster::passes
