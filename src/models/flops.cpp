#include "models/flops.h"

namespace muster::models {

void BatchSize::add(std::span<const int32_t> cu_seqlens, double masked_positions) {
  for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    const double length = cu_seqlens[s + 1] - cu_seqlens[s];
    tokens += length, squares += length * length, sequences += 1;
  }
  masked += masked_positions;
}

double training_flops(const ModelConfig& c, const BatchSize& batch) {
  const auto h = static_cast<double>(c.hidden_size), layers = static_cast<double>(c.layers);
  const double weights = 4 * h * h + 2 * h * static_cast<double>(c.intermediate_size);  // of a layer
  double multiply_adds = layers * (weights * batch.tokens + 2 * h * batch.squares);     // queries with keys, scores with values
  switch (c.head) {
    case Head::classification: multiply_adds += batch.sequences * (h * h + h * static_cast<double>(c.num_labels())); break;
    case Head::pretraining: multiply_adds += batch.sequences * (h * h + 2 * h); [[fallthrough]];
    case Head::masked_lm: multiply_adds += batch.masked * (h * h + h * static_cast<double>(c.vocab_size)); break;
  }
  return 3 * 2 * multiply_adds;
}

}  // namespace muster::models
