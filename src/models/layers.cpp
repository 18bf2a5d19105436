#include "models/layers.h"

namespace muster::models {

graph::Value dense(graph::Builder& b, graph::Value x, const std::string& name, int64_t out) {
  const graph::Dim in = b.type(x).dims[1];
  const graph::Value weight = b.parameter(name + ".weight", {out, in});
  const graph::Value bias = b.parameter(name + ".bias", {out});
  const graph::Value product = b.dot(x, weight, false, true);
  return b.add(product, b.broadcast(bias, b.type(product).dims, {1}));
}

graph::Value norm(graph::Builder& b, graph::Value x, const std::string& name, double epsilon) {
  const graph::Dim width = b.type(x).dims[1];
  const graph::Value gamma = b.parameter(name + ".weight", {width});
  const graph::Value beta = b.parameter(name + ".bias", {width});
  return b.layer_norm(x, gamma, beta, epsilon);
}

graph::Value activate(graph::Builder& b, graph::Value x, Activation activation) {
  switch (activation) {
    case Activation::gelu: return b.gelu(x);
    case Activation::gelu_tanh: return b.gelu(x, true);
    case Activation::relu: return b.maximum(x, b.constant(0, b.type(x).dims));
  }
  throw Error(ErrorKind::internal, "[models] unknown activation {}", static_cast<int>(activation));
}

}  // namespace muster::models
