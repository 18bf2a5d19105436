#include "graph/graph.h"

#include "core/hash.h"

namespace muster::graph {
namespace {

std::string to_string(const Dim& d) {
  static constexpr std::string_view kNames[] = {"", "T", "B", "P"};
  if (d.fixed()) return std::to_string(d.offset);
  std::string text = d.scale == 1 ? "" : std::to_string(d.scale);
  text += kNames[static_cast<size_t>(d.symbol)];
  if (d.offset) text += fmt::format("{:+}", d.offset);
  return text;
}

/// Each line two spaces further in.
std::string indented(const std::string& lines) {
  std::string text;
  for (size_t begin = 0, end = 0; begin < lines.size(); begin = end + 1) {
    end = lines.find('\n', begin);
    text += "  " + lines.substr(begin, end - begin + 1);
  }
  return text;
}

std::string to_string(const Attrs& a) {
  const Attrs none;
  std::string text;
  const auto put = [&](bool differs, const std::string& item) {
    if (differs) text += (text.empty() ? "" : ", ") + item;
  };
  std::string axes;
  for (const int64_t axis : a.axes) axes += (axes.empty() ? "" : " ") + std::to_string(axis);
  put(!a.axes.empty(), "axes=" + axes);
  put(a.start != none.start || a.limit != none.limit, fmt::format("start={}, limit={}", a.start, a.limit));
  put(a.transpose_a, "transpose_a");
  put(a.transpose_b, "transpose_b");
  put(a.value != none.value, fmt::format("value={}", a.value));
  put(a.rate != none.rate, fmt::format("rate={}, stream={}", a.rate, a.stream));
  put(a.heads != none.heads, fmt::format("heads={}", a.heads));
  put(a.approximate, "approximate");
  put(a.bf16, "bf16");
  put(a.beta1 != none.beta1 || a.beta2 != none.beta2 || a.weight_decay != none.weight_decay,
      fmt::format("beta1={}, beta2={}, weight_decay={}", a.beta1, a.beta2, a.weight_decay));
  put(a.parts != none.parts, fmt::format("parts={}", a.parts));
  if (a.body) put(true, "body=\n" + indented(to_string(*a.body)));
  return text;
}

std::string to_string(Value v) { return v.output ? fmt::format("%{}.{}", v.node, v.output) : fmt::format("%{}", v.node); }

}  // namespace

Shape Type::shape(const SymbolValues& values) const {
  Shape s;
  for (const Dim& d : dims) s.push_back(d.at(values));
  return s;
}

std::string to_string(const Type& type) {
  std::string text = std::string(name_of(type.dtype)) + "[";
  for (size_t i = 0; i < type.dims.size(); ++i) text += (i ? ", " : "") + to_string(type.dims[i]);
  return text + "]";
}

std::vector<int32_t> Graph::leaves(Op op) const {
  std::vector<int32_t> found;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].op == op) found.push_back(static_cast<int32_t>(i));
  return found;
}

std::optional<Value> Graph::find(Op leaf, std::string_view name) const {
  for (size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].op == leaf && nodes[i].name == name) return Value{static_cast<int32_t>(i), 0};
  return std::nullopt;
}

std::string to_string(const Graph& graph) {
  std::string text;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    text += fmt::format("%{} = {}", i, info(n.op).name);
    if (!n.name.empty()) text += " \"" + n.name + "\"";
    if (!n.inputs.empty()) {
      text += "(";
      for (size_t k = 0; k < n.inputs.size(); ++k) text += (k ? ", " : "") + to_string(n.inputs[k]);
      text += ")";
    }
    if (const std::string attrs = to_string(n.attrs); !attrs.empty()) text += " {" + attrs + "}";
    text += " :";
    for (const Type& t : n.types) text += " " + to_string(t);
    text += "\n";
  }
  for (const Output& o : graph.outputs) text += fmt::format("output \"{}\" = {}\n", o.name, to_string(o.value));
  return text;
}

uint64_t hash(const Graph& graph) { return fnv1a(to_string(graph)); }

}  // namespace muster::graph
