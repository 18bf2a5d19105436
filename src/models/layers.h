// The pieces every model is built of: dense, layer norm, activation, and the numbers of the dropouts. Each declares its own parameters.
// Composite ops stay whole here (attention, layer_norm, gelu); what is fused with what is the business of passes.
#pragma once
#include <cstdint>
#include <string>

#include "graph/builder.h"
#include "models/config.h"

namespace muster::models {

/// x [R, K] -> [R, out] with parameters `name`.weight [out, K] and `name`.bias [out].
graph::Value dense(graph::Builder& b, graph::Value x, const std::string& name, int64_t out);
/// Parameters `name`.weight and `name`.bias [H].
graph::Value norm(graph::Builder& b, graph::Value x, const std::string& name, double epsilon);
graph::Value activate(graph::Builder& b, graph::Value x, Activation activation);

/// Streams of the random numbers: one for each dropout of a program, the same whatever the number of layers.
inline constexpr uint32_t kEmbeddingStream = 0, kHeadStream = 1, kHeadOutStream = 2;
enum class LayerDropout : uint32_t { attention, attention_out, output };
constexpr uint32_t layer_stream(int64_t layer, LayerDropout which) {
  return 16u * (static_cast<uint32_t>(layer) + 1) + static_cast<uint32_t>(which);
}

}  // namespace muster::models
