#include "passes/rewrite.h"

namespace muster::passes {

using graph::Graph;
using graph::Node;
using graph::Value;

Value Rewriter::at(Value old) const {
  MUSTER_ASSERT(written(old));
  return became_[static_cast<size_t>(old.node)][static_cast<size_t>(old.output)];
}

bool Rewriter::written(Value old) const {
  const auto& row = became_[static_cast<size_t>(old.node)];
  return static_cast<size_t>(old.output) < row.size() && row[static_cast<size_t>(old.output)].node >= 0;
}

void Rewriter::set(Value old, Value now) {
  auto& row = became_[static_cast<size_t>(old.node)];
  row.resize(from_.nodes[static_cast<size_t>(old.node)].types.size(), Value{-1, 0});
  row[static_cast<size_t>(old.output)] = now;
}

Value Rewriter::emit_like(int32_t n, std::vector<Value> inputs) {
  const Node& node = from_.nodes[static_cast<size_t>(n)];
  return builder_.emit(node.op, std::move(inputs), node.attrs, node.types[0], node.name);
}

void Rewriter::copy(int32_t n) {
  const Node& node = from_.nodes[static_cast<size_t>(n)];
  std::vector<Value> inputs;
  for (const Value v : node.inputs) inputs.push_back(at(v));
  const Value now = emit_like(n, std::move(inputs));
  for (size_t k = 0; k < node.types.size(); ++k) set({n, static_cast<int32_t>(k)}, {now.node, static_cast<int32_t>(k)});
}

Graph Rewriter::finish() {
  for (const graph::Output& o : from_.outputs) to_.outputs.push_back({o.name, at(o.value)});
  return std::move(to_);
}

Uses::Uses(const Graph& graph) {
  for (const Node& node : graph.nodes) uses_.emplace_back(node.types.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (const Value v : graph.nodes[n].inputs)
      uses_[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)].push_back(static_cast<int32_t>(n));
  for (const graph::Output& o : graph.outputs) uses_[static_cast<size_t>(o.value.node)][static_cast<size_t>(o.value.output)].push_back(-1);
}

const std::vector<int32_t>& Uses::of(Value v) const { return uses_[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]; }

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size());
  for (const graph::Output& o : graph.outputs) live[static_cast<size_t>(o.value.node)] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (node.op == graph::Op::parameter || node.op == graph::Op::input) live[i] = true;
    if (!live[i]) continue;
    for (const Value v : node.inputs) live[static_cast<size_t>(v.node)] = true;
  }
  return live;
}

}  // namespace muster::passes
