// Builds graphs: one function per op, each checks its operands and infers the result's type.
// Errors are bugs of the model code or of a config: Error(invalid_argument) "[op] what, with the types".
#pragma once
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace muster::graph {

/// Types of the outputs of `op` on operands of these types. The one place where shapes are inferred; verify() uses it too.
/// For leaves, convert, broadcast, reshape and scatter_add the result type is not implied: it is `declared` (checked).
std::vector<Type> infer(Op op, std::span<const Type> inputs, const Attrs& attrs, const Type& declared);

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const Type& type(Value v) const { return graph_.type(v); }

  /// Adds any node; the named functions below are the readable way.
  Value emit(Op op, std::vector<Value> inputs, Attrs attrs = {}, Type declared = {}, std::string name = {});

  Value parameter(const std::string& name, std::vector<Dim> dims);
  Value input(const std::string& name, DType dtype, std::vector<Dim> dims);
  /// A tensor of one repeated value.
  Value constant(double value, std::vector<Dim> dims, DType dtype = DType::f32);
  void output(const std::string& name, Value value) { graph_.outputs.push_back({name, value}); }

  Value neg(Value x) { return emit(Op::neg, {x}); }
  Value exp(Value x) { return emit(Op::exp, {x}); }
  Value log(Value x) { return emit(Op::log, {x}); }
  Value sqrt(Value x) { return emit(Op::sqrt, {x}); }
  Value rsqrt(Value x) { return emit(Op::rsqrt, {x}); }
  Value tanh(Value x) { return emit(Op::tanh, {x}); }
  Value erf(Value x) { return emit(Op::erf, {x}); }
  Value gelu(Value x, bool approximate = false);
  Value convert(Value x, DType dtype);
  Value add(Value a, Value b) { return emit(Op::add, {a, b}); }
  Value sub(Value a, Value b) { return emit(Op::sub, {a, b}); }
  Value mul(Value a, Value b) { return emit(Op::mul, {a, b}); }
  Value div(Value a, Value b) { return emit(Op::div, {a, b}); }
  Value maximum(Value a, Value b) { return emit(Op::maximum, {a, b}); }
  /// bool[...]: a > b.
  Value greater(Value a, Value b) { return emit(Op::greater, {a, b}); }
  Value select(Value condition, Value a, Value b) { return emit(Op::select, {condition, a, b}); }
  /// x with each element dropped with probability `rate`; `stream` must differ between the dropouts of a program.
  Value dropout(Value x, double rate, uint32_t stream);

  /// Operand axis i becomes result axis axes[i]; the result's other axes repeat (StableHLO broadcast_in_dim).
  Value broadcast(Value x, std::vector<Dim> dims, std::vector<int64_t> axes);
  Value reshape(Value x, std::vector<Dim> dims);
  Value transpose(Value x, std::vector<int64_t> permutation);
  Value slice(Value x, int64_t axis, int64_t start, int64_t limit);
  Value concat(std::vector<Value> parts, int64_t axis);
  /// The axes vanish from the result.
  Value reduce_sum(Value x, std::vector<int64_t> axes);
  Value reduce_max(Value x, std::vector<int64_t> axes);

  /// [M, K] x [K, N]; an operand marked transposed is given as [K, M] or [N, K].
  Value dot(Value a, Value b, bool transpose_a = false, bool transpose_b = false);
  /// x [R, K], weight [N, K] as Linear stores it, bias [N]: x weight^T + bias -> [R, N].
  Value linear(Value x, Value weight, Value bias);

  /// table [V, H], rows i32 [R] -> [R, H].
  Value gather(Value table, Value rows);
  /// updates [R, H], rows i32 [R] -> [V, H]: zero but for the sums of the updates of each row.
  Value scatter_add(Value updates, Value rows, std::vector<Dim> dims);

  /// x [R, H], gamma and beta [H] -> y; statistics are outputs 1 (mean [R]) and 2 (1 / deviation [R]).
  Value layer_norm(Value x, Value gamma, Value beta, double epsilon);
  /// qkv [T, 3 heads d] = q | k | v, cu_seqlens i32 [B+1] -> out [T, heads d]; output 1: log-sum-exp f32 [T, heads].
  Value attention(Value qkv, Value cu_seqlens, int32_t heads, double dropout_rate, uint32_t stream);
  /// logits [R, C], labels i32 [R] (negative: no loss) -> losses f32 [R]; output 1: log-sum-exp f32 [R].
  Value softmax_cross_entropy(Value logits, Value labels, double label_smoothing);

 private:
  Graph& graph_;
};

}  // namespace muster::graph
