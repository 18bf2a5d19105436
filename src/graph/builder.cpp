#include "graph/builder.h"

namespace muster::graph {

Value Builder::emit(Op op, std::vector<Value> inputs, Attrs attrs, Type declared, std::string name) {
  std::vector<Type> types;
  for (const Value v : inputs) types.push_back(graph_.type(v));
  Node node{op, std::move(inputs), std::move(attrs), {}, std::move(name)};
  node.types = infer(op, types, node.attrs, declared);
  graph_.nodes.push_back(std::move(node));
  return {static_cast<int32_t>(graph_.nodes.size()) - 1, 0};
}

Value Builder::parameter(const std::string& name, std::vector<Dim> dims) {
  return emit(Op::parameter, {}, {}, {DType::f32, std::move(dims)}, name);
}

Value Builder::input(const std::string& name, DType dtype, std::vector<Dim> dims) {
  return emit(Op::input, {}, {}, {dtype, std::move(dims)}, name);
}

Value Builder::constant(double value, std::vector<Dim> dims, DType dtype) {
  Attrs attrs;
  attrs.value = value;
  return emit(Op::constant, {}, attrs, {dtype, std::move(dims)});
}

Value Builder::gelu(Value x, bool approximate) {
  Attrs attrs;
  attrs.approximate = approximate;
  return emit(Op::gelu, {x}, attrs);
}

Value Builder::convert(Value x, DType dtype) { return type(x).dtype == dtype ? x : emit(Op::convert, {x}, {}, {dtype, type(x).dims}); }

Value Builder::dropout(Value x, double rate, uint32_t stream) {
  if (rate == 0) return x;
  Attrs attrs;
  attrs.rate = rate, attrs.stream = stream;
  return emit(Op::dropout, {x}, attrs);
}

Value Builder::broadcast(Value x, std::vector<Dim> dims, std::vector<int64_t> axes) {
  Attrs attrs;
  attrs.axes = std::move(axes);
  return emit(Op::broadcast, {x}, attrs, {type(x).dtype, std::move(dims)});
}

Value Builder::reshape(Value x, std::vector<Dim> dims) { return emit(Op::reshape, {x}, {}, {type(x).dtype, std::move(dims)}); }

Value Builder::transpose(Value x, std::vector<int64_t> permutation) {
  Attrs attrs;
  attrs.axes = std::move(permutation);
  return emit(Op::transpose, {x}, attrs);
}

Value Builder::slice(Value x, int64_t axis, int64_t start, int64_t limit) {
  Attrs attrs;
  attrs.axes = {axis}, attrs.start = start, attrs.limit = limit;
  return emit(Op::slice, {x}, attrs);
}

Value Builder::concat(std::vector<Value> parts, int64_t axis) {
  Attrs attrs;
  attrs.axes = {axis};
  return emit(Op::concat, std::move(parts), attrs);
}

Value Builder::reduce_sum(Value x, std::vector<int64_t> axes) {
  Attrs attrs;
  attrs.axes = std::move(axes);
  return emit(Op::reduce_sum, {x}, attrs);
}

Value Builder::reduce_max(Value x, std::vector<int64_t> axes) {
  Attrs attrs;
  attrs.axes = std::move(axes);
  return emit(Op::reduce_max, {x}, attrs);
}

Value Builder::dot(Value a, Value b, bool transpose_a, bool transpose_b) {
  Attrs attrs;
  attrs.transpose_a = transpose_a, attrs.transpose_b = transpose_b;
  return emit(Op::dot, {a, b}, attrs);
}

Value Builder::linear(Value x, Value weight, Value bias) {
  const Value y = dot(x, weight, false, true);
  return add(y, broadcast(bias, type(y).dims, {1}));
}

Value Builder::gather(Value table, Value rows) { return emit(Op::gather, {table, rows}); }

Value Builder::scatter_add(Value updates, Value rows, std::vector<Dim> dims) {
  return emit(Op::scatter_add, {updates, rows}, {}, {type(updates).dtype, std::move(dims)});
}

Value Builder::layer_norm(Value x, Value gamma, Value beta, double epsilon) {
  Attrs attrs;
  attrs.value = epsilon;
  return emit(Op::layer_norm, {x, gamma, beta}, attrs);
}

Value Builder::attention(Value qkv, Value cu_seqlens, int32_t heads, double dropout_rate, uint32_t stream) {
  Attrs attrs;
  attrs.heads = heads, attrs.rate = dropout_rate, attrs.stream = dropout_rate == 0 ? 0 : stream;
  return emit(Op::attention, {qkv, cu_seqlens}, attrs);
}

Value Builder::softmax_cross_entropy(Value logits, Value labels, double label_smoothing) {
  Attrs attrs;
  attrs.value = label_smoothing;
  return emit(Op::softmax_cross_entropy, {logits, labels}, attrs);
}

}  // namespace muster::graph
