// The program of a sequence classifier: encoder, the head as Transformers defines it for each family, and the loss.
#pragma once
#include <optional>

#include "graph/graph.h"
#include "models/config.h"

namespace muster::models {

struct ClassifierOptions {
  bool training = false;          // dropouts and the loss
  bool loss = false;              // the loss without dropouts: evaluation
  double label_smoothing = 0;     // of the loss
  std::optional<double> dropout;  // instead of every rate of the config (0: none)
};

/// Inputs (inputs.h makes them): ids, type_ids (when config.has_token_types()), position_ids: i32 [T]; cu_seqlens: i32 [B+1];
/// first_rows: i32 [B]; with a loss also labels: i32 [B] and sample_weights: f32 [B].
/// Outputs: "logits" f32 [B, C]; with a loss "loss" f32 [] = sum over b of cross entropy(logits, labels)[b] * sample_weights[b].
/// Throws Error(unsupported) for a loss of regression or multi-label classification, Error(invalid_argument) on a rate outside [0,
/// kMaxDropout].
graph::Graph build_classifier(const ModelConfig& config, const ClassifierOptions& options = {});

}  // namespace muster::models
