// The encoder that BERT, RoBERTa, DistilBERT and MiniLM share: embeddings and post-norm transformer blocks, on packed tokens.
// Heads are elsewhere (classifier.h): they start from the value returned here.
#pragma once
#include "graph/builder.h"
#include "models/config.h"

namespace muster::models {

/// 0 leaves a dropout out of the graph.
struct DropoutRates {
  double hidden = 0, attention = 0, classifier = 0;
};

/// Hidden states [T, H] of the last layer. Declares the inputs ids, type_ids (when the model has token types), position_ids: i32 [T],
/// cu_seqlens: i32 [B+1], and the encoder's parameters (names in weights.h).
graph::Value encode(graph::Builder& b, const ModelConfig& config, const DropoutRates& rates);

}  // namespace muster::models
