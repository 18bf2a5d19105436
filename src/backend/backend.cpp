#include "backend/backend.h"

namespace muster::backend {

using graph::Dim;
using graph::Graph;
using graph::Op;
using graph::SymbolValues;

Signature signature_of(const Graph& graph) {
  Signature s;
  for (const int32_t n : graph.leaves(Op::parameter))
    s.parameters.push_back({graph.nodes[static_cast<size_t>(n)].name, graph.nodes[static_cast<size_t>(n)].types[0]});
  for (const int32_t n : graph.leaves(Op::input))
    s.inputs.push_back({graph.nodes[static_cast<size_t>(n)].name, graph.nodes[static_cast<size_t>(n)].types[0]});
  for (const graph::Output& o : graph.outputs) s.outputs.push_back({o.name, graph.type(o.value)});
  return s;
}

namespace {

void check(const std::vector<Signature::Slot>& slots, const std::vector<TensorView>& tensors, const SymbolValues& values,
           const char* what) {
  if (slots.size() != tensors.size())
    throw Error(ErrorKind::invalid_argument, "[run] {} {}s given, the program has {}", tensors.size(), what, slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    const Shape expected = slots[i].type.shape(values);
    if (tensors[i].dtype != slots[i].type.dtype || tensors[i].shape != expected)
      throw Error(ErrorKind::invalid_argument, "[run] {} '{}' is {}{}, expected {}{}", what, slots[i].name, name_of(tensors[i].dtype),
                  to_string(tensors[i].shape), name_of(slots[i].type.dtype), to_string(expected));
  }
}

}  // namespace

SymbolValues solve_symbols(const Signature& signature, const Bindings& io) {
  SymbolValues values{1, -1, -1, -1};
  for (size_t i = 0; i < signature.inputs.size() && i < io.inputs.size(); ++i) {
    const std::vector<Dim>& dims = signature.inputs[i].type.dims;
    for (size_t k = 0; k < dims.size() && k < io.inputs[i].shape.size(); ++k) {
      if (dims[k].fixed() || values[static_cast<size_t>(dims[k].symbol)] >= 0) continue;
      values[static_cast<size_t>(dims[k].symbol)] = (io.inputs[i].shape[k] - dims[k].offset) / dims[k].scale;
    }
  }
  check(signature.inputs, io.inputs, values, "input");
  check(signature.parameters, io.parameters, values, "parameter");
  check(signature.outputs, io.outputs, values, "output");
  return values;
}

}  // namespace muster::backend
