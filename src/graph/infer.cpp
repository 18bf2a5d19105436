// Result types of every op. No construction here (builder.cpp), no check of whole graphs (verify.cpp).
#include <algorithm>

#include "graph/builder.h"

namespace muster::graph {
namespace {

/// One inference: the op's name and operands for messages, and the checks that ops share.
struct Inference {
  Op op;
  std::span<const Type> in;
  const Attrs& attrs;

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    std::string operands;
    for (const Type& t : in) operands += (operands.empty() ? "" : ", ") + to_string(t);
    throw Error(ErrorKind::invalid_argument, "[{}] {}; operands: {}", info(op).name, fmt::format(format, std::forward<Args>(args)...),
                operands);
  }
  void need(bool condition, std::string_view what) const {
    if (!condition) fail("{}", what);
  }
  void rank(size_t operand, size_t rank) const {
    if (in[operand].rank() != rank) fail("operand {} must have {} dimensions", operand, rank);
  }
  void floating(size_t operand) const {
    if (!is_float(in[operand].dtype)) fail("operand {} must be of a float type", operand);
  }
  void integer(size_t operand) const {
    if (in[operand].dtype != DType::i32) fail("operand {} must be i32", operand);
  }
  void same_dims(size_t a, size_t b) const {
    if (in[a].dims != in[b].dims) fail("operands {} and {} must have one shape", a, b);
  }
  void same(size_t a, size_t b) const {
    if (in[a] != in[b]) fail("operands {} and {} must have one type", a, b);
  }
  [[nodiscard]] size_t axis(int64_t axis, size_t operand = 0) const {
    if (axis < 0 || axis >= static_cast<int64_t>(in[operand].rank())) fail("axis {} is out of range", axis);
    return static_cast<size_t>(axis);
  }
};

Type broadcast_type(const Inference& i, const Type& declared) {
  i.need(i.attrs.axes.size() == i.in[0].rank(), "one axis per operand dimension is needed");
  for (size_t k = 0; k < i.attrs.axes.size(); ++k) {
    const int64_t to = i.attrs.axes[k];
    i.need(to >= 0 && to < static_cast<int64_t>(declared.rank()) && (k == 0 || to > i.attrs.axes[k - 1]),
           "axes must rise within the result");
    i.need(i.in[0].dims[k] == declared.dims[static_cast<size_t>(to)], "operand sizes must be those of the result's axes");
  }
  return {i.in[0].dtype, declared.dims};
}

/// The product of the dims as (symbol, scale): reshape keeps it. A dimension with both a symbol and an offset must stand unchanged.
std::pair<Symbol, int64_t> volume(const Inference& i, const std::vector<Dim>& dims) {
  Symbol symbol = Symbol::none;
  int64_t scale = 1;
  for (const Dim& d : dims) {
    if (d.fixed()) {
      scale *= d.offset;
      continue;
    }
    i.need(symbol == Symbol::none && d.offset == 0, "one plain symbolic size at most");
    symbol = d.symbol, scale *= d.scale;
  }
  return {symbol, scale};
}

Type reduce_type(const Inference& i) {
  Type t{i.in[0].dtype, {}};
  for (size_t k = 0; k < i.in[0].rank(); ++k)
    if (std::find(i.attrs.axes.begin(), i.attrs.axes.end(), static_cast<int64_t>(k)) == i.attrs.axes.end())
      t.dims.push_back(i.in[0].dims[k]);
  for (const int64_t a : i.attrs.axes) (void)i.axis(a);
  i.need(t.rank() + i.attrs.axes.size() == i.in[0].rank(), "axes must differ");
  return t;
}

Type dot_type(const Inference& i) {
  i.rank(0, 2), i.rank(1, 2), i.floating(0), i.floating(1);
  const auto& a = i.in[0].dims;
  const auto& b = i.in[1].dims;
  i.need(a[i.attrs.transpose_a ? 0 : 1] == b[i.attrs.transpose_b ? 1 : 0], "inner sizes differ");
  const DType dtype =
      i.in[0].dtype == DType::bf16 && i.in[1].dtype == DType::bf16 ? DType::f32 : i.in[0].dtype;  // bf16 x bf16 is a weight gradient
  return {dtype, {a[i.attrs.transpose_a ? 1 : 0], b[i.attrs.transpose_b ? 0 : 1]}};
}

std::vector<Type> attention_types(const Inference& i) {
  i.rank(0, 2), i.floating(0), i.rank(1, 1), i.integer(1);
  const Dim width = i.in[0].dims[1];
  i.need(i.attrs.heads > 0 && width.fixed() && width.offset % (3 * static_cast<int64_t>(i.attrs.heads)) == 0,
         "the width must be 3 x heads x head size");
  return {{i.in[0].dtype, {i.in[0].dims[0], width.offset / 3}}, {DType::f32, {i.in[0].dims[0], i.attrs.heads}}};
}

/// gamma: number of that operand; gamma and beta are [width of x], mean and rstd are f32 [rows of x].
std::vector<Type> norm_types(const Inference& i, size_t gamma, const Type& x) {
  i.rank(0, 2), i.floating(0);
  i.need(i.in[gamma].rank() == 1 && i.in[gamma].dims[0] == x.dims[1], "gamma must have the row's size");
  const Type statistic{DType::f32, {x.dims[0]}};
  return {x, statistic, statistic};
}

}  // namespace

std::vector<Type> infer(Op op, std::span<const Type> in, const Attrs& attrs, const Type& declared) {
  const Inference i{op, in, attrs};
  const OpInfo& row = info(op);
  if (static_cast<int>(in.size()) < row.min_inputs || static_cast<int>(in.size()) > row.max_inputs)
    i.fail("takes {} to {} operands", row.min_inputs, row.max_inputs);
  switch (op) {
    case Op::parameter:
      for (const Dim& d : declared.dims) i.need(d.fixed(), "a parameter has fixed sizes");
      return {declared};
    case Op::input:
    case Op::constant: return {declared};
    case Op::neg:
    case Op::exp:
    case Op::log:
    case Op::sqrt:
    case Op::rsqrt:
    case Op::tanh:
    case Op::erf:
    case Op::gelu:
    case Op::dropout: i.floating(0); return {in[0]};
    case Op::convert: i.need(in[0].dims == declared.dims, "convert keeps the shape"); return {declared};
    case Op::gelu_grad:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::maximum: i.floating(0), i.same(0, 1); return {in[0]};
    case Op::greater: i.same(0, 1); return {{DType::boolean, in[0].dims}};
    case Op::select:
      i.need(in[0].dtype == DType::boolean, "the condition must be bool");
      i.same_dims(0, 1), i.same(1, 2);
      return {in[1]};
    case Op::broadcast: return {broadcast_type(i, declared)};
    case Op::reshape:
      i.need(volume(i, in[0].dims) == volume(i, declared.dims), "reshape keeps the number of elements");
      return {{in[0].dtype, declared.dims}};
    case Op::transpose: {
      Type t{in[0].dtype, {}};
      std::vector<int64_t> sorted = attrs.axes;
      std::sort(sorted.begin(), sorted.end());
      for (size_t k = 0; k < sorted.size(); ++k) i.need(sorted[k] == static_cast<int64_t>(k), "axes must be a permutation");
      i.need(sorted.size() == in[0].rank(), "one axis per dimension is needed");
      for (const int64_t a : attrs.axes) t.dims.push_back(in[0].dims[static_cast<size_t>(a)]);
      return {t};
    }
    case Op::slice: {
      i.need(attrs.axes.size() == 1, "one axis is needed");
      const size_t axis = i.axis(attrs.axes[0]);
      const Dim size = in[0].dims[axis];
      i.need(size.fixed() && attrs.start >= 0 && attrs.start <= attrs.limit && attrs.limit <= size.offset,
             "0 <= start <= limit <= size of a fixed axis");
      Type t = in[0];
      t.dims[axis] = attrs.limit - attrs.start;
      return {t};
    }
    case Op::concat: {
      i.need(attrs.axes.size() == 1, "one axis is needed");
      const size_t axis = i.axis(attrs.axes[0]);
      Type t = in[0];
      int64_t total = 0;
      for (const Type& part : in) {
        i.need(part.rank() == t.rank() && part.dtype == t.dtype && part.dims[axis].fixed(), "parts must agree and be fixed along the axis");
        for (size_t k = 0; k < t.rank(); ++k) i.need(k == axis || part.dims[k] == t.dims[k], "parts must agree but along the axis");
        total += part.dims[axis].offset;
      }
      t.dims[axis] = total;
      return {t};
    }
    case Op::reduce_sum:
    case Op::reduce_max: {  // of bf16: f32
      i.floating(0);
      Type t = reduce_type(i);
      if (t.dtype == DType::bf16) t.dtype = DType::f32;
      return {t};
    }
    case Op::dot: return {dot_type(i)};
    case Op::gather: i.rank(0, 2), i.rank(1, 1), i.integer(1); return {{in[0].dtype, {in[1].dims[0], in[0].dims[1]}}};
    case Op::scatter_add:
      i.rank(0, 2), i.rank(1, 1), i.integer(1), i.floating(0);
      i.need(in[0].dims[0] == in[1].dims[0], "one row number per update is needed");
      i.need(declared.rank() == 2 && declared.dims[1] == in[0].dims[1], "the result has the updates' width");
      return {declared};
    case Op::layer_norm: {
      std::vector<Type> t = norm_types(i, 1, in[0]);
      i.same(1, 2);
      return t;
    }
    case Op::layer_norm_grad: {  // x, gamma, mean, rstd, cotangent
      std::vector<Type> t = norm_types(i, 1, in[0]);
      i.need(in[2] == t[1] && in[3] == t[2], "the statistics must be those of the forward");
      i.same(0, 4);
      t[1] = t[2] = in[1];
      return t;
    }
    case Op::attention: return attention_types(i);
    case Op::attention_grad: {  // qkv, cu_seqlens, out, log-sum-exp, cotangent of out
      const std::vector<Type> forward = attention_types(i);
      i.need(in[2] == forward[0] && in[3] == forward[1] && in[4] == forward[0], "operands must be those of the forward");
      return {in[0]};
    }
    case Op::softmax_cross_entropy:
      i.rank(0, 2), i.floating(0), i.rank(1, 1), i.integer(1);
      i.need(in[0].dims[0] == in[1].dims[0], "one label per row is needed");
      return {{DType::f32, {in[0].dims[0]}}, {DType::f32, {in[0].dims[0]}}};
    case Op::softmax_cross_entropy_grad:  // logits, labels, log-sum-exp, cotangent of the losses
      i.rank(0, 2), i.floating(0), i.rank(1, 1), i.integer(1);
      i.need(in[2] == Type{DType::f32, {in[0].dims[0]}} && in[3] == in[2], "one statistic and one cotangent per row are needed");
      return {in[0]};
    case Op::adamw:
    case Op::lamb:  // parameter, gradient, first moment, second moment, scalars f32 [4]
      i.floating(0), i.floating(1), i.same(0, 2), i.same(0, 3), i.same_dims(0, 1);
      i.need(in[4] == Type{DType::f32, {4}}, "the scalars must be f32[4]");
      i.need(attrs.parts == 1 || (attrs.parts > 0 && in[0].rank() > 0 && in[0].dims[0].offset % attrs.parts == 0),
             "the parts must be equal");
      return {in[0], in[2], in[3]};
    case Op::region: {
      i.need(attrs.body != nullptr, "a region has a body");
      const std::vector<int32_t> leaves = attrs.body->leaves(Op::input);
      i.need(leaves.size() == in.size(), "one input of the body per operand is needed");
      for (size_t k = 0; k < leaves.size(); ++k)
        i.need(attrs.body->type({leaves[k], 0}) == in[k], "operands must be of the types of the body's inputs");
      i.need(!attrs.body->outputs.empty(), "the body needs an output");
      std::vector<Type> t;
      for (const Output& o : attrs.body->outputs) t.push_back(attrs.body->type(o.value));
      return t;
    }
  }
  i.fail("unknown op");
}

}  // namespace muster::graph
