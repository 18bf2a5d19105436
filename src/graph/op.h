// The closed set of operations. Shapes and dtypes are inferred in builder.cpp, derivatives live in autodiff/vjp_rules.cpp, kernels in
// the backends: each a switch without default, so that a new op does not compile until every one of them knows it.
#pragma once
#include <cstdint>
#include <string_view>

namespace muster::graph {

enum class Op : uint8_t {
  // Leaves.
  parameter,
  input,
  constant,
  // Element-wise; two operands of one shape (broadcast is explicit).
  neg,
  exp,
  log,
  sqrt,
  rsqrt,
  tanh,
  erf,
  gelu,
  gelu_grad,
  convert,
  add,
  sub,
  mul,
  div,
  maximum,
  greater,
  select,
  dropout,
  // Shape.
  broadcast,
  reshape,
  transpose,
  slice,
  concat,
  // Reductions.
  reduce_sum,
  reduce_max,
  // Products.
  dot,
  // Rows of a table.
  gather,
  scatter_add,
  // Composites: kept whole because they have a better kernel than their parts.
  layer_norm,
  layer_norm_grad,
  attention,
  attention_grad,
  softmax_cross_entropy,
  softmax_cross_entropy_grad,
  // The optimizer's update of one parameter.
  adamw,
  lamb,
  // Made by passes/fuse only.
  region,
};
inline constexpr int kOpCount = static_cast<int>(Op::region) + 1;

enum class OpKind : uint8_t { leaf, elementwise, shape, reduction, product, rows, composite, update, fused };

inline constexpr int kAnyOutputs = -1;

struct OpInfo {
  Op op;
  std::string_view name;
  int min_inputs, max_inputs, outputs;  // outputs: kAnyOutputs where the attributes say how many
  OpKind kind;
};

/// One row of the table in op.cpp; complete by static_assert.
const OpInfo& info(Op op);

}  // namespace muster::graph
