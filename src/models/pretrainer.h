// The program of masked language modelling, with next-sentence prediction where the head has it: encoder, heads as Transformers'
// BertForPreTraining, BertForMaskedLM, RobertaForMaskedLM and DistilBertForMaskedLM define them, and the loss. The vocabulary is only
// computed for the P positions asked for.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "graph/graph.h"
#include "models/config.h"
#include "models/inputs.h"

namespace muster::models {

struct PretrainerOptions {
  bool training = false;          // dropouts
  bool loss = true;               // else only logits
  std::optional<double> dropout;  // instead of every rate of the config (0: none)
};

/// Inputs as build_classifier's, and masked_rows: i32 [P] (rows of the packed tokens); with a loss masked_labels: i32 [P] and
/// masked_weights: f32 [P]; for Head::pretraining also next_labels: i32 [B] (1: a random next segment) and next_weights: f32 [B].
/// Outputs: "logits" f32 [P, V] and, for pretraining, "next_logits" f32 [B, 2] without a loss; with one "loss" = "mlm_loss" + "nsp_loss"
/// f32 [] (sums of cross entropies times weights), "mlm_lse", "mlm_losses" and "mlm_best" f32 [P] (log-sum-exp, loss and largest
/// logit of each position: together they tell whether the label was the likeliest), "next_logits".
/// Throws Error(invalid_argument) for a classification head.
graph::Graph build_pretrainer(const ModelConfig& config, const PretrainerOptions& options = {});

/// Adds masked_rows, masked_labels and masked_weights [P] to make_inputs' result.
/// Throws Error(invalid_argument) on sizes that differ, a row outside the batch, a label outside the vocabulary.
void add_masks(Inputs& inputs, const ModelConfig& config, std::span<const int32_t> rows, std::span<const int32_t> labels,
               std::span<const float> weights);
/// Adds next_labels and next_weights [B].
void add_next(Inputs& inputs, std::span<const int32_t> labels, std::span<const float> weights);

}  // namespace muster::models
