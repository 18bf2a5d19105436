#include "passes/groups.h"

#include <algorithm>

#include "passes/rewrite.h"

namespace muster::passes {

using graph::Dim;
using graph::Graph;
using graph::Node;
using graph::Op;
using graph::OpKind;
using graph::Type;
using graph::Value;

namespace {

enum class Role : uint8_t { none, map, row_reduction, column_sum, norm };

/// What loops over [rows, width]: rows known when a batch is there, width now.
bool is_space(const std::vector<Dim>& dims) { return dims.size() == 2 && !dims[0].fixed() && dims[1].fixed(); }

Role role_of(const Graph& g, const Node& node) {
  const Type& type = node.types[0];
  switch (node.op) {
    case Op::greater:
    case Op::select: return Role::none;  // conditions do not leave a region
    case Op::layer_norm:
    case Op::layer_norm_grad: return is_space(type.dims) ? Role::norm : Role::none;
    case Op::reduce_sum:
    case Op::reduce_max: {
      if (!is_space(g.type(node.inputs[0]).dims) || node.attrs.axes.size() != 1) return Role::none;
      if (node.attrs.axes[0] == 1) return Role::row_reduction;
      return node.op == Op::reduce_sum ? Role::column_sum : Role::none;
    }
    default:
      return info(node.op).kind == OpKind::elementwise && is_space(type.dims) && is_float(type.dtype) &&
                     is_float(g.type(node.inputs[0]).dtype)
                 ? Role::map
                 : Role::none;
  }
}

/// The [rows, width] that a node with a role loops over.
const std::vector<Dim>& space_of(const Graph& g, const Node& node) {
  const bool reduces = node.op == Op::reduce_sum || node.op == Op::reduce_max;
  return reduces ? g.type(node.inputs[0]).dims : node.types[0].dims;
}

class Grouping {
 public:
  explicit Grouping(const Graph& graph) : g_(graph), uses_(graph), of_(graph.nodes.size(), -1) {}

  std::vector<Group> run() {
    const auto count = static_cast<int32_t>(g_.nodes.size());
    const auto each_product = [&](bool over_rows, void (Grouping::*grow)(int32_t)) {
      for (int32_t n = 0; n < count; ++n)
        if (node(n).op == Op::dot && of_[index(n)] < 0 && is_space(node(n).types[0].dims) == over_rows) (this->*grow)(n);
    };
    each_product(false, &Grouping::take_prologue);  // gradients of weights: their operands made again must not join the forward's
    each_product(true, &Grouping::grow_epilogue);
    each_product(true, &Grouping::take_prologue);
    for (int32_t n = 0; n < count; ++n)
      if (of_[index(n)] < 0 && role_of(g_, node(n)) != Role::none) join_producers(n);
    std::vector<Group> kept;
    for (Group& group : groups_)
      if (worth_it(group)) kept.push_back(std::move(group));
    return kept;
  }

 private:
  static size_t index(int32_t n) { return static_cast<size_t>(n); }
  [[nodiscard]] const Node& node(int32_t n) const { return g_.nodes[index(n)]; }

  void grow_epilogue(int32_t product) {
    Group group{{product}, product};
    const std::vector<Dim>& space = node(product).types[0].dims;
    for (int32_t n = product + 1; n < static_cast<int32_t>(g_.nodes.size()); ++n) {
      const Role role = role_of(g_, node(n));
      // Dropout waits for the pass over whole rows: a tile is too narrow to draw its random numbers well.
      if (of_[index(n)] >= 0 || (role != Role::map && role != Role::column_sum) || node(n).op == Op::dropout) continue;
      if (space_of(g_, node(n)) != space || !reads(n, group.nodes)) continue;
      std::vector<int32_t> wider = group.nodes;
      wider.push_back(n);
      if (fits(wider)) group.nodes = std::move(wider);
    }
    if (group.nodes.size() > 1) add(std::move(group));
  }

  void join_producers(int32_t n) {
    std::vector<int32_t> producers;  // groups over the same space that n reads
    for (const Value v : node(n).inputs) {
      const int32_t from = source_of(g_, v);
      const int32_t group = from < 0 ? -1 : of_[index(from)];
      if (group < 0 || groups_[index(group)].product >= 0 || std::count(producers.begin(), producers.end(), group) > 0) continue;
      if (space_of(g_, node(groups_[index(group)].nodes[0])) == space_of(g_, node(n))) producers.push_back(group);
    }
    std::sort(producers.rbegin(), producers.rend());  // the latest is the likeliest to be still in the caches
    std::vector<int32_t> joined;
    std::vector<int32_t> nodes{n};
    for (const int32_t group : producers) {
      std::vector<int32_t> wider = nodes;
      wider.insert(wider.end(), groups_[index(group)].nodes.begin(), groups_[index(group)].nodes.end());
      if (!fits(wider)) continue;
      nodes = std::move(wider);
      joined.push_back(group);
    }
    for (const int32_t group : joined) groups_[index(group)].nodes.clear();
    std::sort(nodes.begin(), nodes.end());
    add({std::move(nodes), -1});
  }

  /// The maps that make an operand of `product` and nothing else, together with it. They would otherwise join what they read, far before.
  void take_prologue(int32_t product) {
    const std::vector<Value>& in = node(product).inputs;
    if (in[0] == in[1]) return;
    for (const Value v : in) {
      std::vector<int32_t> nodes{product};
      grow_backwards(v, nodes);
      std::sort(nodes.begin(), nodes.end());
      if (nodes.size() > 1 && fits(nodes)) return add({std::move(nodes), product});
    }
  }
  void grow_backwards(Value v, std::vector<int32_t>& nodes) {
    const int32_t from = source_of(g_, v);
    if (from < 0 || of_[index(from)] >= 0 || std::count(nodes.begin(), nodes.end(), from) > 0) return;
    if (role_of(g_, node(from)) != Role::map || node(from).op == Op::dropout) return;
    const auto& users = uses_.of({from, 0});
    if (std::any_of(users.begin(), users.end(), [&](int32_t user) { return std::count(nodes.begin(), nodes.end(), user) == 0; })) return;
    nodes.push_back(from);
    for (const Value operand : node(from).inputs) grow_backwards(operand, nodes);
  }

  void add(Group group) {
    for (const int32_t n : group.nodes) of_[index(n)] = static_cast<int32_t>(groups_.size());
    groups_.push_back(std::move(group));
  }

  [[nodiscard]] bool reads(int32_t n, const std::vector<int32_t>& nodes) const {
    return std::any_of(node(n).inputs.begin(), node(n).inputs.end(),
                       [&](Value v) { return std::count(nodes.begin(), nodes.end(), source_of(g_, v)) > 0; });
  }

  /// Whether `nodes` can be one region: nothing outside stands between them, and no one of them reads a sum over the rows of another.
  [[nodiscard]] bool fits(const std::vector<int32_t>& nodes) const {
    std::vector<bool> inside(g_.nodes.size()), seen(g_.nodes.size());
    const int32_t first = *std::min_element(nodes.begin(), nodes.end());
    for (const int32_t n : nodes) inside[index(n)] = true;
    std::vector<int32_t> open;
    const auto look = [&](int32_t from) {
      if (from >= 0 && !seen[index(from)]) seen[index(from)] = true, open.push_back(from);
    };
    for (const int32_t n : nodes)
      for (const Value v : node(n).inputs) {
        const int32_t from = source_of(g_, v);
        if (from < 0 || !inside[index(from)]) {
          look(from);
          continue;
        }
        const Role role = role_of(g_, node(from));
        const bool over_rows = role == Role::column_sum || (node(from).op == Op::layer_norm_grad && value_of(v).output > 0);
        if (over_rows) return false;
      }
    while (!open.empty()) {
      const int32_t n = open.back();
      open.pop_back();
      if (inside[index(n)]) return false;
      const int32_t group = of_[index(n)];
      if (group < 0) {
        if (n < first) continue;  // nothing before the first node comes from one of them
        for (const Value v : node(n).inputs) look(v.node);
        continue;
      }
      for (const int32_t member : groups_[index(group)].nodes)
        for (const Value v : node(member).inputs) look(v.node);
      for (const int32_t member : groups_[index(group)].nodes) seen[index(member)] = true;
    }
    return true;
  }

  /// v, or what it is a broadcast of.
  [[nodiscard]] Value value_of(Value v) const {
    while (g_.at(v).op == Op::broadcast) v = g_.at(v).inputs[0];
    return v;
  }

  /// A single operation has a kernel of its own.
  [[nodiscard]] static bool worth_it(const Group& group) { return group.nodes.size() > 1; }

  const Graph& g_;
  Uses uses_;
  std::vector<int32_t> of_;  // group of each node
  std::vector<Group> groups_;
};

}  // namespace

bool is_free(const Graph& graph, const Node& node) {
  return node.op == Op::constant || (node.op == Op::broadcast && node.types[0].rank() == 2 && graph.type(node.inputs[0]).rank() <= 1);
}

int32_t source_of(const Graph& graph, Value v) {
  while (graph.at(v).op == Op::broadcast && is_free(graph, graph.at(v))) v = graph.at(v).inputs[0];
  return graph.at(v).op == Op::constant ? -1 : v.node;
}

std::vector<Group> find_groups(const Graph& graph) { return Grouping(graph).run(); }

}  // namespace muster::passes
