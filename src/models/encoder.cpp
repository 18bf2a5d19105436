#include "models/encoder.h"

#include "models/layers.h"

namespace muster::models {
namespace {

graph::Value embed(graph::Builder& b, const ModelConfig& config, const DropoutRates& rates) {
  const auto rows_of = [&](const char* input, const char* table, int64_t rows) {
    const graph::Value parameter = b.parameter(std::string("embeddings.") + table + ".weight", {rows, config.hidden_size});
    return b.gather(parameter, b.input(input, DType::i32, {graph::kTokens}));
  };
  graph::Value x = rows_of("ids", "word", config.vocab_size);
  x = b.add(x, rows_of("position_ids", "position", config.max_position_embeddings));
  if (config.has_token_types()) x = b.add(x, rows_of("type_ids", "type", config.type_vocab_size));
  return b.dropout(norm(b, x, "embeddings.norm", config.layer_norm_eps), rates.hidden, kEmbeddingStream);
}

/// Post-norm: each half is norm(dropout(f(x)) + x).
graph::Value block(graph::Builder& b, const ModelConfig& config, const DropoutRates& rates, int64_t layer, graph::Value x,
                   graph::Value cu_seqlens) {
  const std::string name = "layer." + std::to_string(layer);
  const graph::Value qkv = dense(b, x, name + ".qkv", 3 * config.hidden_size);
  graph::Value y =
      b.attention(qkv, cu_seqlens, static_cast<int32_t>(config.heads), rates.attention, layer_stream(layer, LayerDropout::attention));
  y = dense(b, y, name + ".attention_out", config.hidden_size);
  y = b.dropout(y, rates.hidden, layer_stream(layer, LayerDropout::attention_out));
  x = norm(b, b.add(y, x), name + ".attention_norm", config.layer_norm_eps);

  y = activate(b, dense(b, x, name + ".up", config.intermediate_size), config.activation);
  y = dense(b, y, name + ".down", config.hidden_size);
  y = b.dropout(y, rates.hidden, layer_stream(layer, LayerDropout::output));
  return norm(b, b.add(y, x), name + ".output_norm", config.layer_norm_eps);
}

}  // namespace

graph::Value encode(graph::Builder& b, const ModelConfig& config, const DropoutRates& rates) {
  graph::Value x = embed(b, config, rates);
  const graph::Value cu_seqlens = b.input("cu_seqlens", DType::i32, {graph::Dim(graph::Symbol::sequences, 1, 1)});
  for (int64_t layer = 0; layer < config.layers; ++layer) x = block(b, config, rates, layer, x, cu_seqlens);
  return x;
}

}  // namespace muster::models
