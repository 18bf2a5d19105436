#include <set>

#include "graph/builder.h"

namespace muster::graph {

void verify(const Graph& graph) {
  std::set<std::string> names;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    std::vector<Type> in;
    for (const Value v : node.inputs) {
      if (v.node < 0 || v.node >= static_cast<int32_t>(i))
        throw Error(ErrorKind::internal, "[verify] node %{} ({}) uses %{}, which does not come before it", i, info(node.op).name, v.node);
      const Node& from = graph.at(v);
      if (v.output < 0 || v.output >= static_cast<int32_t>(from.types.size()))
        throw Error(ErrorKind::internal, "[verify] node %{} ({}) uses output {} of %{}, which has {}", i, info(node.op).name, v.output,
                    v.node, from.types.size());
      in.push_back(graph.type(v));
    }
    if (node.types.empty() || (info(node.op).outputs != kAnyOutputs && static_cast<int>(node.types.size()) != info(node.op).outputs))
      throw Error(ErrorKind::internal, "[verify] node %{} ({}) has {} outputs", i, info(node.op).name, node.types.size());
    std::vector<Type> expected;
    try {
      expected = infer(node.op, in, node.attrs, node.types[0]);
    } catch (const Error& e) {
      throw Error(ErrorKind::internal, "[verify] node %{}: {}", i, e.what());
    }
    if (expected != node.types)
      throw Error(ErrorKind::internal, "[verify] node %{} ({}) is {}, inference says {}", i, info(node.op).name, to_string(node.types[0]),
                  to_string(expected[0]));
    if (node.op == Op::region) verify(*node.attrs.body);
    const bool leaf = node.op == Op::parameter || node.op == Op::input;
    if (leaf && (node.name.empty() || !names.insert(node.name).second))
      throw Error(ErrorKind::internal, "[verify] node %{}: leaf name '{}' is empty or taken", i, node.name);
  }
  std::set<std::string> outputs;
  for (const Output& o : graph.outputs) {
    const bool known = o.value.node >= 0 && o.value.node < static_cast<int32_t>(graph.nodes.size()) && o.value.output >= 0 &&
                       o.value.output < static_cast<int32_t>(graph.at(o.value).types.size());
    if (!known) throw Error(ErrorKind::internal, "[verify] output '{}' is no value of the graph", o.name);
    if (!outputs.insert(o.name).second) throw Error(ErrorKind::internal, "[verify] output name '{}' is taken", o.name);
  }
}

}  // namespace muster::graph
