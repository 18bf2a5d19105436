// One rule per op: the cotangent of the result becomes the cotangents of the operands. A switch without default: a new op does not
// compile until its rule exists. The walk that calls the rules is in gradient.cpp.
#include "autodiff/vjp_rules.h"

#include <algorithm>
#include <numbers>

namespace muster::autodiff {

using graph::Builder;
using graph::Dim;
using graph::Node;
using graph::Op;
using graph::Type;
using graph::Value;

namespace {

using Cotangents = std::vector<std::optional<Value>>;

/// The node at hand, and what the rules share.
struct Rule {
  Builder& b;
  int32_t index;
  const Node& node;
  const Cotangents& cts;
  const std::vector<bool>& wants;

  [[nodiscard]] Value in(size_t k) const { return node.inputs[k]; }
  [[nodiscard]] Value out(int32_t k = 0) const { return {index, k}; }
  /// By value: a reference into the graph would not outlive the next node.
  [[nodiscard]] Type type(Value v) const { return b.type(v); }
  [[nodiscard]] Value like(double value, Value v) const { return b.constant(value, type(v).dims, type(v).dtype); }

  [[noreturn]] void unsupported(std::string_view why) const {
    throw Error(ErrorKind::unsupported, "[vjp] {} (node %{}) {}", graph::info(node.op).name, index, why);
  }
  /// The cotangent of the first output, the only one that has a derivative.
  [[nodiscard]] Value ct() const {
    for (size_t k = 1; k < cts.size(); ++k)
      if (cts[k]) unsupported(fmt::format("has no derivative for its output {}, a statistic: build the loss from output 0", k));
    return *cts[0];
  }

  [[nodiscard]] Cotangents dot() const;
  [[nodiscard]] Cotangents maximum() const;
  [[nodiscard]] Cotangents reduce_max() const;
  [[nodiscard]] Cotangents slice() const;
  [[nodiscard]] Cotangents concat() const;
  [[nodiscard]] Value erf() const;
  [[nodiscard]] std::vector<int64_t> other_axes(size_t rank) const;
};

/// The axes in [0, rank) that the node's attribute does not name.
std::vector<int64_t> Rule::other_axes(size_t rank) const {
  std::vector<int64_t> rest;
  const auto& named = node.attrs.axes;
  for (int64_t a = 0; a < static_cast<int64_t>(rank); ++a)
    if (std::find(named.begin(), named.end(), a) == named.end()) rest.push_back(a);
  return rest;
}

/// With A' = A or its transpose, likewise B': dA' = ct B'^T and dB' = A'^T ct, written so that only flags change, never data.
Cotangents Rule::dot() const {
  const bool ta = node.attrs.transpose_a, tb = node.attrs.transpose_b;
  const auto product = [&](Value x, Value y, bool tx, bool ty, Value like) {
    graph::Attrs attrs;
    attrs.transpose_a = tx, attrs.transpose_b = ty, attrs.bf16 = node.attrs.bf16;
    return b.convert(b.emit(Op::dot, {x, y}, attrs), type(like).dtype);
  };
  Cotangents parts(2);
  if (wants[0]) parts[0] = ta ? product(in(1), ct(), tb, true, in(0)) : product(ct(), in(1), false, !tb, in(0));
  if (wants[1]) parts[1] = tb ? product(ct(), in(0), true, ta, in(1)) : product(in(0), ct(), !ta, false, in(1));
  return parts;
}

/// Equal operands get half each, as in PyTorch.
Cotangents Rule::maximum() const {
  const Value half = b.mul(ct(), like(0.5, ct()));
  const Value first = b.select(b.greater(in(0), in(1)), ct(), b.select(b.greater(in(1), in(0)), like(0, ct()), half));
  return {first, b.sub(ct(), first)};
}

/// Equal largest elements share evenly, as in PyTorch's amax.
Cotangents Rule::reduce_max() const {
  const std::vector<Dim> dims = type(in(0)).dims;
  const std::vector<int64_t> kept = other_axes(dims.size());
  const DType dtype = type(in(0)).dtype;
  const Value below = b.greater(b.broadcast(b.convert(out(), dtype), dims, kept), in(0));
  const Value largest = b.select(below, like(0, in(0)), like(1, in(0)));
  const Value share = b.div(ct(), b.convert(b.reduce_sum(largest, node.attrs.axes), type(ct()).dtype));
  return {b.mul(largest, b.broadcast(b.convert(share, dtype), dims, kept))};
}

/// Zeros where the slice did not look.
Cotangents Rule::slice() const {
  const int64_t axis = node.attrs.axes[0];
  const Type whole = type(in(0));
  const auto zeros = [&](int64_t size) {
    std::vector<Dim> dims = whole.dims;
    dims[static_cast<size_t>(axis)] = size;
    return b.constant(0, dims, whole.dtype);
  };
  const int64_t after = whole.dims[static_cast<size_t>(axis)].offset - node.attrs.limit;
  std::vector<Value> parts;
  if (node.attrs.start > 0) parts.push_back(zeros(node.attrs.start));
  parts.push_back(ct());
  if (after > 0) parts.push_back(zeros(after));
  return {parts.size() == 1 ? parts[0] : b.concat(parts, axis)};
}

Cotangents Rule::concat() const {
  const int64_t axis = node.attrs.axes[0];
  Cotangents parts(node.inputs.size());
  int64_t start = 0;
  for (size_t k = 0; k < parts.size(); ++k) {
    const int64_t size = type(in(k)).dims[static_cast<size_t>(axis)].offset;
    if (wants[k]) parts[k] = b.slice(ct(), axis, start, start + size);
    start += size;
  }
  return parts;
}

/// 2 / sqrt(pi) exp(-x^2)
Value Rule::erf() const { return b.mul(ct(), b.mul(like(2 * std::numbers::inv_sqrtpi, in(0)), b.exp(b.neg(b.mul(in(0), in(0)))))); }

}  // namespace

Cotangents vjp(Builder& b, int32_t index, const Node& node, const Cotangents& cts, const std::vector<bool>& wants) {
  const Rule r{b, index, node, cts, wants};
  const Value ct = r.ct(), out = r.out();
  const auto in = [&](size_t k) { return r.in(k); };
  const auto maybe = [&](size_t k, auto&& make) { return wants[k] ? std::optional<Value>(make()) : std::nullopt; };
  // clang-format off: a table of rules
  switch (node.op) {
    case Op::parameter: case Op::input: case Op::constant: return {};
    case Op::neg: return {b.neg(ct)};
    case Op::exp: return {b.mul(ct, out)};
    case Op::log: return {b.div(ct, in(0))};
    case Op::sqrt: return {b.div(b.mul(ct, r.like(0.5, ct)), out)};
    case Op::rsqrt: return {b.mul(b.mul(ct, r.like(-0.5, ct)), b.mul(out, b.mul(out, out)))};
    case Op::tanh: return {b.mul(ct, b.sub(r.like(1, out), b.mul(out, out)))};
    case Op::erf: return {r.erf()};
    case Op::gelu: return {b.emit(Op::gelu_grad, {in(0), ct}, node.attrs)};
    case Op::convert:
      if (!is_float(r.type(in(0)).dtype)) return {std::nullopt};
      return {b.convert(ct, r.type(in(0)).dtype)};
    case Op::add: return {ct, ct};
    case Op::sub: return {ct, maybe(1, [&] { return b.neg(ct); })};
    case Op::mul: return {maybe(0, [&] { return b.mul(ct, in(1)); }), maybe(1, [&] { return b.mul(ct, in(0)); })};
    case Op::div: {
      const Value share = b.div(ct, in(1));
      return {share, maybe(1, [&] { return b.neg(b.mul(share, out)); })};
    }
    case Op::maximum: return r.maximum();
    case Op::select:
      return {std::nullopt, maybe(1, [&] { return b.select(in(0), ct, r.like(0, ct)); }),
              maybe(2, [&] { return b.select(in(0), r.like(0, ct), ct); })};
    case Op::dropout: return {b.emit(Op::dropout, {ct}, node.attrs)};
    case Op::broadcast: {
      const std::vector<int64_t> added = r.other_axes(node.types[0].rank());
      return {added.empty() ? ct : b.convert(b.reduce_sum(ct, added), r.type(in(0)).dtype)};  // sums of bf16 are f32
    }
    case Op::reshape: return {b.reshape(ct, r.type(in(0)).dims)};
    case Op::transpose: {
      std::vector<int64_t> inverse(node.attrs.axes.size());
      for (size_t k = 0; k < inverse.size(); ++k) inverse[static_cast<size_t>(node.attrs.axes[k])] = static_cast<int64_t>(k);
      return {b.transpose(ct, inverse)};
    }
    case Op::slice: return r.slice();
    case Op::concat: return r.concat();
    case Op::reduce_sum: {
      const Type whole = r.type(in(0));
      return {b.broadcast(b.convert(ct, whole.dtype), whole.dims, r.other_axes(whole.rank()))};
    }
    case Op::reduce_max: return r.reduce_max();
    case Op::dot: return r.dot();
    case Op::gather: return {b.scatter_add(ct, in(1), r.type(in(0)).dims), std::nullopt};
    case Op::scatter_add: return {b.convert(b.gather(ct, in(1)), r.type(in(0)).dtype), std::nullopt};
    case Op::layer_norm: {
      const Value g = b.emit(Op::layer_norm_grad, {in(0), in(1), r.out(1), r.out(2), ct}, node.attrs);
      return {g, Value{g.node, 1}, Value{g.node, 2}};
    }
    case Op::attention: return {b.emit(Op::attention_grad, {in(0), in(1), out, r.out(1), ct}, node.attrs), std::nullopt};
    case Op::softmax_cross_entropy:
      return {b.emit(Op::softmax_cross_entropy_grad, {in(0), in(1), r.out(1), ct}, node.attrs), std::nullopt};
    case Op::greater: r.unsupported("is a step: it has no derivative");
    case Op::gelu_grad: case Op::layer_norm_grad: case Op::attention_grad: case Op::softmax_cross_entropy_grad:
      r.unsupported("has no rule: second derivatives are not computed");
    case Op::adamw: case Op::lamb: r.unsupported("has no rule: an update is not differentiated");
    case Op::region:
      r.unsupported("has no rule: take the gradient before the fuse pass");
  }
  // clang-format on
  r.unsupported("is unknown");
}

}  // namespace muster::autodiff
