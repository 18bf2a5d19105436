// Floating point operations of a model on paper: what utilisation figures count. What the engine really does: graph/cost.h.
#pragma once
#include <cstdint>
#include <span>

#include "models/config.h"

namespace muster::models {

/// What a batch holds, as far as its cost goes.
struct BatchSize {
  double tokens = 0;   // padding does not count: there is none
  double squares = 0;  // sum of squares of the lengths of its sequences
  double sequences = 0;
  double masked = 0;  // masked positions (heads masked_lm and pretraining)

  void add(std::span<const int32_t> cu_seqlens, double masked_positions);
};

/// Forward and backward of one batch: matrix products only, two operations a multiply-add, three times the forward pass, nothing computed
/// twice. Source: Chowdhery et al. 2022 (PaLM), appendix B, with attention by the real lengths and the head by its real rows.
double training_flops(const ModelConfig& config, const BatchSize& batch);

}  // namespace muster::models
