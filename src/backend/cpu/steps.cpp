// One case per op: from a node's attributes and operands to a kernel call. No arithmetic of its own beyond what is never hot.
#include <cstring>

#include "backend/cpu/program.h"
#include "backend/cpu/run.h"

namespace muster::cpu {

using graph::Attrs;
using graph::Node;
using graph::Op;
using graph::Type;
using graph::Value;

namespace {

/// [rows, width] of a value: the last axis is the width.
struct Extent {
  int64_t rows = 1, width = 1;
  [[nodiscard]] int64_t count() const { return rows * width; }
};
Extent extent(const Type& type, const graph::SymbolValues& symbols) {
  Extent e;
  for (size_t i = 0; i < type.rank(); ++i) (i + 1 == type.rank() ? e.width : e.rows) *= type.dims[i].at(symbols);
  return e;
}

void check_rows(Op op, const int32_t* rows, int64_t n, int64_t size) {
  for (int64_t i = 0; i < n; ++i)
    if (rows[i] < 0 || rows[i] >= size)
      throw Error(ErrorKind::invalid_argument, "[{}] row number {} at position {} is outside the table of {} rows", info(op).name, rows[i],
                  i, size);
}

void greater(DType dtype, const void* a, const void* b, uint8_t* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (dtype == DType::f32)
      out[i] = static_cast<const float*>(a)[i] > static_cast<const float*>(b)[i];
    else
      out[i] = to_f32(static_cast<const BF16*>(a)[i]) > to_f32(static_cast<const BF16*>(b)[i]);
  }
}

Unary unary_of(const Node& node) {
  switch (node.op) {
    case Op::neg: return Unary::neg;
    case Op::exp: return Unary::exp;
    case Op::log: return Unary::log;
    case Op::sqrt: return Unary::sqrt;
    case Op::rsqrt: return Unary::rsqrt;
    case Op::tanh: return Unary::tanh;
    case Op::erf: return Unary::erf;
    default: return node.attrs.approximate ? Unary::gelu_tanh : Unary::gelu;
  }
}

Binary binary_of(const Node& node) {
  switch (node.op) {
    case Op::add: return Binary::add;
    case Op::sub: return Binary::sub;
    case Op::mul: return Binary::mul;
    case Op::div: return Binary::div;
    case Op::maximum: return Binary::maximum;
    default: return node.attrs.approximate ? Binary::gelu_tanh_grad : Binary::gelu_grad;
  }
}

}  // namespace

void Program::step(Run& run, int32_t n) {
  const Node& node = graph_.nodes[static_cast<size_t>(n)];
  const Attrs& attrs = node.attrs;
  const std::vector<Value>& in = node.inputs;
  const DType dtype = node.types[0].dtype;
  const Extent out_size = extent(node.types[0], run.symbols);
  const auto size_of_input = [&](size_t i) { return extent(graph_.type(in[i]), run.symbols); };
  const auto output = [&](int32_t k) { return run.at({n, k}); };
  const auto statistic = [&](int32_t k) { return run.as<float>({n, k}); };
  const KernelContext context{pool_, workspace_};
  const Dropout dropout{dropout_rate(attrs.rate), run.io.seed, attrs.stream};

  switch (node.op) {
    case Op::parameter:
    case Op::input:
    case Op::reshape: return;
    case Op::constant: return kernels_.fill(context, dtype, static_cast<float>(attrs.value), output(0), out_size.count());
    case Op::neg:
    case Op::exp:
    case Op::log:
    case Op::sqrt:
    case Op::rsqrt:
    case Op::tanh:
    case Op::erf:
    case Op::gelu: return kernels_.unary(context, unary_of(node), dtype, run.at(in[0]), output(0), out_size.count());
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::maximum:
    case Op::gelu_grad: {
      const RightOperand& right = layout_.right[static_cast<size_t>(n)];
      if (right.shape == Right::same)
        return kernels_.binary(context, binary_of(node), Right::same, dtype, run.at(in[0]), run.at(in[1]), output(0), out_size.rows,
                               out_size.width);
      return kernels_.binary(context, binary_of(node), right.shape, dtype, run.at(in[right.swapped ? 1 : 0]), run.at(right.source),
                             output(0), out_size.rows, out_size.width);
    }
    case Op::greater: return greater(graph_.type(in[0]).dtype, run.at(in[0]), run.at(in[1]), run.as<uint8_t>({n, 0}), out_size.count());
    case Op::select:
      return kernels_.select(context, dtype, run.as<uint8_t>(in[0]), run.at(in[1]), run.at(in[2]), output(0), out_size.count());
    case Op::convert: return kernels_.convert(context, graph_.type(in[0]).dtype, run.at(in[0]), dtype, output(0), out_size.count());
    case Op::dropout: return kernels_.dropout(context, dtype, dropout, run.at(in[0]), output(0), out_size.count());
    case Op::broadcast: {  // one that no reader sees through: filled row by row
      const Extent from = size_of_input(0);
      kernels_.fill(context, dtype, 0.0f, output(0), out_size.count());
      const Right shape = from.count() == 1                                                     ? Right::scalar
                          : attrs.axes.back() + 1 == static_cast<int64_t>(node.types[0].rank()) ? Right::row
                                                                                                : Right::column;
      return kernels_.binary(context, Binary::add, shape, dtype, output(0), run.at(in[0]), output(0), out_size.rows, out_size.width);
    }
    case Op::transpose: {
      const Extent from = size_of_input(0);
      return kernels_.transpose(context, dtype, run.at(in[0]), output(0), from.rows, from.width);
    }
    case Op::slice:
    case Op::concat: return slice_or_concat(run, n);
    case Op::reduce_sum: return reduce_sum(run, n);
    case Op::reduce_max: {
      const Extent from = size_of_input(0);
      if (node.types[0].rank() == 0)
        return kernels_.row_max(context, graph_.type(in[0]).dtype, run.at(in[0]), statistic(0), 1, from.count());
      return kernels_.row_max(context, graph_.type(in[0]).dtype, run.at(in[0]), statistic(0), from.rows, from.width);
    }
    case Op::dot: return dot(run, n);
    case Op::region: return region(run, n);
    case Op::gather: {
      const Extent table = size_of_input(0);
      check_rows(node.op, run.as<int32_t>(in[1]), out_size.rows, table.rows);
      return kernels_.gather_rows(context, dtype, run.at(in[0]), run.as<int32_t>(in[1]), output(0), out_size.rows, out_size.width);
    }
    case Op::scatter_add: {
      const Extent from = size_of_input(0);
      check_rows(node.op, run.as<int32_t>(in[1]), from.rows, out_size.rows);
      if (!adds_onto(run, n)) kernels_.fill(context, DType::f32, 0.0f, output(0), out_size.count());
      return kernels_.scatter_add_rows(context, graph_.type(in[0]).dtype, run.at(in[0]), run.as<int32_t>(in[1]), statistic(0), from.rows,
                                       from.width);
    }
    case Op::layer_norm:
      return kernels_.layer_norm(context, {dtype, out_size.rows, out_size.width, run.at(in[0]), run.as<float>(in[1]), run.as<float>(in[2]),
                                           static_cast<float>(attrs.value), output(0), statistic(1), statistic(2)});
    case Op::layer_norm_grad:
      return kernels_.layer_norm_grad(context, {dtype, out_size.rows, out_size.width, run.at(in[4]), run.at(in[0]), run.as<float>(in[2]),
                                                run.as<float>(in[3]), run.as<float>(in[1]), output(0), statistic(1), statistic(2), false});
    case Op::attention:
    case Op::attention_grad: {
      const Type& qkv = graph_.type(in[0]);
      const auto* cu_seqlens = run.as<int32_t>(in[1]);
      const int64_t sequences = size_of_input(1).count() - 1, tokens = qkv.dims[0].at(run.symbols),
                    head_size = qkv.dims[1].offset / 3 / attrs.heads;
      if (sequences < 0 || cu_seqlens[sequences] != tokens)
        throw Error(ErrorKind::invalid_argument, "[{}] cu_seqlens must end with the number of tokens, {}", info(node.op).name, tokens);
      if (node.op == Op::attention)
        return kernels_.attention(context,
                                  {dtype, sequences, attrs.heads, head_size, run.at(in[0]), cu_seqlens, dropout, output(0), statistic(1)});
      return kernels_.attention_grad(context, {dtype, sequences, attrs.heads, head_size, run.at(in[0]), cu_seqlens, dropout, run.at(in[2]),
                                               run.as<float>(in[3]), run.at(in[4]), output(0)});
    }
    case Op::softmax_cross_entropy: {
      const Extent logits = size_of_input(0);
      return kernels_.cross_entropy(context, {graph_.type(in[0]).dtype, logits.rows, logits.width, run.at(in[0]), run.as<int32_t>(in[1]),
                                              static_cast<float>(attrs.value), statistic(0), statistic(1)});
    }
    case Op::softmax_cross_entropy_grad:
      return kernels_.cross_entropy_grad(context, {dtype, out_size.rows, out_size.width, run.at(in[0]), run.as<int32_t>(in[1]),
                                                   run.as<float>(in[2]), run.as<float>(in[3]), static_cast<float>(attrs.value), output(0)});
    case Op::adamw:
    case Op::lamb: {
      const float* scalars = run.as<float>(in[4]);
      for (int32_t k = 0; k < 3; ++k) {
        const void* operand = run.at(in[static_cast<size_t>(k == 0 ? 0 : k + 1)]);
        if (output(k) != operand) std::memcpy(output(k), operand, static_cast<size_t>(out_size.count()) * sizeof(float));
      }
      AdamW options;
      options.lr = scalars[0], options.bias_correction1 = scalars[1], options.bias_correction2 = scalars[2],
      options.grad_scale = scalars[3];
      options.beta1 = attrs.beta1, options.beta2 = attrs.beta2, options.eps = attrs.value, options.weight_decay = attrs.weight_decay;
      if (node.op == Op::lamb) {
        const int64_t part = out_size.count() / attrs.parts;
        for (int64_t first = 0; first < out_size.count(); first += part)
          kernels_.lamb(context, options,
                        {statistic(0) + first, run.as<float>(in[1]) + first, statistic(1) + first, statistic(2) + first, nullptr}, part);
        return;
      }
      return kernels_.adamw(context, options, {statistic(0), run.as<float>(in[1]), statistic(1), statistic(2), nullptr}, out_size.count());
    }
  }
}

const PackedMatrix& Program::packed(Run& run, Value weight, bool transposed, Math math) {
  const Operand from = operand(run, weight, transposed);
  Packed& p = packed_[{weight.node, transposed}];
  if (p.source == nullptr)
    p.matrix = pack(from, math, isa_, pool_);
  else if (p.version != run.io.parameters_version || p.source != from.data)
    repack(p.matrix, from, pool_);
  p.version = run.io.parameters_version, p.source = from.data;
  return p.matrix;
}

Operand Program::operand(const Run& run, Value v, bool transposed) const {
  const Extent size = extent(graph_.type(v), run.symbols);
  return {run.at(v), graph_.type(v).dtype, transposed ? size.width : size.rows, transposed ? size.rows : size.width, size.width,
          transposed};
}

bool Program::adds_onto(const Run& run, int32_t n) const {
  return layout_.places[static_cast<size_t>(n)][0].home == Home::output && accumulates(graph_.nodes[static_cast<size_t>(n)].types[0]) &&
         run.io.accumulate;
}

void Program::product(Run& run, Value left, Value right, const Attrs& attrs, const Result& result, const Epilogue& epilogue) {
  const Math math = attrs.bf16 ? Math::bf16 : Math::f32;
  const Blocking& blocking = attrs.bf16 ? tuning_.bf16 : tuning_.f32;
  if (run.io.keep_packed && graph_.at(right).op == Op::parameter)
    return matmul(operand(run, left, attrs.transpose_a), packed(run, right, attrs.transpose_b, math), result, epilogue, pool_, workspace_,
                  blocking);
  matmul(operand(run, left, attrs.transpose_a), operand(run, right, attrs.transpose_b), math, isa_, result, epilogue, pool_, workspace_,
         blocking);
}

void Program::dot(Run& run, int32_t n) {
  const Node& node = graph_.nodes[static_cast<size_t>(n)];
  const Type& type = node.types[0];
  const Result result{run.at({n, 0}), type.dtype, type.dims[1].at(run.symbols), adds_onto(run, n)};
  product(run, node.inputs[0], node.inputs[1], node.attrs, result, {});
}

void Program::reduce_sum(Run& run, int32_t n) {
  const Node& node = graph_.nodes[static_cast<size_t>(n)];
  const Type& from = graph_.type(node.inputs[0]);
  const Extent size = extent(from, run.symbols);
  const KernelContext context{pool_, workspace_};
  auto* out = run.as<float>({n, 0});
  if (node.types[0].rank() == 0) {
    *out = kernels_.sum(context, from.dtype, run.at(node.inputs[0]), size.count());
    return;
  }
  if (node.attrs.axes[0] == 1) return kernels_.row_sum(context, from.dtype, run.at(node.inputs[0]), out, size.rows, size.width);
  kernels_.column_sum(context, from.dtype, run.at(node.inputs[0]), out, size.rows, size.width, adds_onto(run, n));
}

void Program::slice_or_concat(Run& run, int32_t n) {
  const Node& node = graph_.nodes[static_cast<size_t>(n)];
  const auto axis = static_cast<size_t>(node.attrs.axes[0]);
  const auto line = [&](const Type& type) {  // bytes from the axis on: one line per index of the axes before it
    int64_t bytes = static_cast<int64_t>(size_of(type.dtype));
    for (size_t i = axis; i < type.rank(); ++i) bytes *= type.dims[i].at(run.symbols);
    return bytes;
  };
  int64_t lines = 1;
  for (size_t i = 0; i < axis; ++i) lines *= node.types[0].dims[i].at(run.symbols);
  const int64_t out_line = line(node.types[0]);
  auto* out = run.as<std::byte>({n, 0});
  int64_t offset = 0;
  for (const Value v : node.inputs) {
    const int64_t in_line = line(graph_.type(v));
    const int64_t step = graph_.type(v).dims[axis].offset == 0 ? 0 : in_line / graph_.type(v).dims[axis].offset;
    const auto* from = run.as<std::byte>(v) + (node.op == Op::slice ? node.attrs.start * step : 0);
    const int64_t width = node.op == Op::slice ? out_line : in_line;
    for (int64_t i = 0; i < lines && width > 0; ++i)
      std::memcpy(out + i * out_line + offset, from + i * in_line, static_cast<size_t>(width));
    offset += in_line;
  }
}

}  // namespace muster::cpu
