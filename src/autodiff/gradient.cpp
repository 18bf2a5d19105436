// The reverse walk: from the loss back to the wanted values, over the nodes between them only. How one op hands its cotangent to its
// operands is in vjp_rules.cpp.
#include "autodiff/gradient.h"

#include <algorithm>
#include <map>
#include <optional>

#include "autodiff/vjp_rules.h"

namespace muster::autodiff {

using graph::Builder;
using graph::Graph;
using graph::Value;

namespace {

/// For each node up to `last`: does one of its operands depend on a wanted value, or is one itself?
std::vector<bool> dependents(const Graph& graph, int32_t last, const std::vector<Value>& wanted) {
  std::vector<bool> depends(static_cast<size_t>(last) + 1, false);
  for (size_t n = 0; n < depends.size(); ++n)
    for (const Value v : graph.nodes[n].inputs)
      if (depends[static_cast<size_t>(v.node)] || std::binary_search(wanted.begin(), wanted.end(), v)) depends[n] = true;
  return depends;
}

}  // namespace

std::vector<Value> gradient(Graph& graph, Value loss, std::span<const Value> wrt) {
  const graph::Type scalar{DType::f32, {}};
  if (graph.type(loss) != scalar)
    throw Error(ErrorKind::invalid_argument, "[gradient] the loss is {}, it must be {}", to_string(graph.type(loss)), to_string(scalar));
  for (const Value v : wrt)
    if (!is_float(graph.type(v).dtype))
      throw Error(ErrorKind::invalid_argument, "[gradient] %{} is {}: only floats have gradients", v.node, to_string(graph.type(v)));

  Builder b(graph);
  std::vector<Value> wanted(wrt.begin(), wrt.end());
  std::sort(wanted.begin(), wanted.end());
  const std::vector<bool> depends = dependents(graph, loss.node, wanted);
  const auto needed = [&](Value v) { return depends[static_cast<size_t>(v.node)] || std::binary_search(wanted.begin(), wanted.end(), v); };

  std::map<Value, Value> cotangents;
  if (needed(loss)) cotangents[loss] = b.constant(1, {});
  for (int32_t n = loss.node; n >= 0; --n) {
    if (!depends[static_cast<size_t>(n)]) continue;
    const graph::Node node = graph.nodes[static_cast<size_t>(n)];  // a copy: the rules append to the graph
    std::vector<std::optional<Value>> ct(node.types.size());
    bool reached = false;
    for (size_t k = 0; k < ct.size(); ++k) {
      const auto found = cotangents.find({n, static_cast<int32_t>(k)});
      if (found != cotangents.end()) ct[k] = found->second, reached = true;
    }
    if (!reached) continue;
    std::vector<bool> wants(node.inputs.size());
    for (size_t k = 0; k < wants.size(); ++k) wants[k] = needed(node.inputs[k]);
    const std::vector<std::optional<Value>> parts = vjp(b, n, node, ct, wants);
    for (size_t k = 0; k < parts.size(); ++k) {
      if (!parts[k] || !wants[k]) continue;
      const auto [slot, first] = cotangents.try_emplace(node.inputs[k], *parts[k]);
      if (!first) slot->second = b.add(slot->second, *parts[k]);
    }
  }

  std::vector<Value> gradients;
  for (const Value v : wrt) {
    const auto found = cotangents.find(v);
    gradients.push_back(found != cotangents.end() ? found->second : b.constant(0, graph.type(v).dims, graph.type(v).dtype));
  }
  return gradients;
}

}  // namespace muster::autodiff
