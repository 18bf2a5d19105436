// What the evaluator (ref.cpp) asks of the ops' loops: a node with its operands' values in, its results' values out.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "graph/graph.h"

namespace muster::ref {

/// A tensor of any dtype. Every element is held as a double: f32, bf16, i32, u8 and bool fit exactly.
struct Array {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<double> values;

  [[nodiscard]] int64_t dim(size_t axis) const { return shape[axis]; }
  [[nodiscard]] double& operator[](int64_t i) { return values[static_cast<size_t>(i)]; }
  [[nodiscard]] double operator[](int64_t i) const { return values[static_cast<size_t>(i)]; }
};

/// Computes one node.
struct Call {
  const graph::Node& node;
  std::vector<const Array*> inputs;
  std::vector<Array> outputs;  // shaped and zeroed
  uint64_t seed = 0;
  graph::SymbolValues symbols{};

  [[nodiscard]] const Array& in(size_t k) const { return *inputs[k]; }
  [[nodiscard]] Array& out(size_t k = 0) { return outputs[k]; }
  [[nodiscard]] std::string_view name() const { return graph::info(node.op).name; }
};

/// The nearest value of a 16-bit float type; `value` itself for any other type.
double rounded(double value, DType dtype);

/// What dropout multiplies the element by (core/dropout_mask.h).
double dropout_factor_of(const Call& call, uint64_t index);

// elementwise.cpp
void unary(Call& call, double (*f)(double));
void binary(Call& call, double (*f)(double, double));
void select(Call& call);
void convert(Call& call);
void dropout(Call& call);
double gelu(double x, bool approximate);
double gelu_derivative(double x, bool approximate);
void gelu(Call& call);
void gelu_grad(Call& call);
void adamw(Call& call);
void lamb(Call& call);

// shapes.cpp
void broadcast(Call& call);
void transpose(Call& call);
void slice(Call& call);
void concat(Call& call);
void reduce_sum(Call& call);
void reduce_max(Call& call);
void dot(Call& call);
void gather(Call& call);
void scatter_add(Call& call);

// composites.cpp
void layer_norm(Call& call);
void layer_norm_grad(Call& call);
void softmax_cross_entropy(Call& call);
void softmax_cross_entropy_grad(Call& call);

// attention.cpp
void attention(Call& call);
void attention_grad(Call& call);

}  // namespace muster::ref
