// From a packed batch of token ids to the input tensors of a model's program, checked.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "core/tensor.h"
#include "models/config.h"

namespace muster::models {

/// Input name -> tensor: what runtime::Session runs on.
using Inputs = std::map<std::string, Tensor, std::less<>>;

/// ids [T]; type_ids [T] or empty (all 0); cu_seqlens [B+1] as in text::TokenBatch. Makes ids, type_ids (when the model has them),
/// position_ids (restarting at each sequence, from config.position_offset()), cu_seqlens and first_rows.
/// Throws Error(invalid_argument) for an id outside the vocabulary, an unknown token type, an empty sequence or batch, cu_seqlens that do
/// not fit; Error(too_large) for a sequence longer than config.max_tokens(). The message names the sequence (counted from 0).
Inputs make_inputs(const ModelConfig& config, std::span<const int32_t> ids, std::span<const int32_t> type_ids,
                   std::span<const int32_t> cu_seqlens);

/// Adds labels and sample_weights [B]. Throws Error(invalid_argument) when the sizes are not B or a label is not below num_labels
/// (a negative one has no loss).
void add_labels(Inputs& inputs, const ModelConfig& config, std::span<const int32_t> labels, std::span<const float> sample_weights);

}  // namespace muster::models
