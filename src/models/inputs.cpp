#include "models/inputs.h"

#include <algorithm>

namespace muster::models {
namespace {

void check_lengths(const ModelConfig& config, size_t tokens, std::span<const int32_t> cu_seqlens) {
  if (cu_seqlens.size() < 2) throw Error(ErrorKind::invalid_argument, "a batch needs at least one sequence");
  if (cu_seqlens.front() != 0 || static_cast<size_t>(std::max(cu_seqlens.back(), 0)) != tokens)
    throw Error(ErrorKind::invalid_argument, "cu_seqlens goes from {} to {}, but the batch has {} tokens", cu_seqlens.front(),
                cu_seqlens.back(), tokens);
  for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    const int64_t length = int64_t{cu_seqlens[s + 1]} - cu_seqlens[s];
    if (length <= 0) throw Error(ErrorKind::invalid_argument, "sequence {} of the batch has {} tokens; it needs at least one", s, length);
    if (length > config.max_tokens())
      throw Error(ErrorKind::too_large,
                  "sequence {} of the batch has {} tokens; the model takes at most {} (its position table has {} rows)", s, length,
                  config.max_tokens(), config.max_position_embeddings);
  }
}

void check_range(std::span<const int32_t> values, int64_t limit, std::span<const int32_t> cu_seqlens, const char* what, const char* key) {
  for (size_t t = 0; t < values.size(); ++t) {
    if (values[t] >= 0 && values[t] < limit) continue;
    const auto after = std::upper_bound(cu_seqlens.begin(), cu_seqlens.end(), static_cast<int32_t>(t));
    const auto sequence = after - cu_seqlens.begin() - 1;
    throw Error(ErrorKind::invalid_argument,
                "sequence {}, token {}: {} {} is not below the model's {} {}; do tokenizer and model belong together?", sequence,
                static_cast<int64_t>(t) - cu_seqlens[static_cast<size_t>(sequence)], what, values[t], key, limit);
  }
}

template <typename T>
Tensor copy_of(std::span<const T> values) {
  Tensor tensor(DTypeOf<T>::value, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<T>().begin());
  return tensor;
}

}  // namespace

Inputs make_inputs(const ModelConfig& config, std::span<const int32_t> ids, std::span<const int32_t> type_ids,
                   std::span<const int32_t> cu_seqlens) {
  check_lengths(config, ids.size(), cu_seqlens);
  check_range(ids, config.vocab_size, cu_seqlens, "id", "vocab_size");
  Inputs inputs;
  if (config.has_token_types()) {
    if (type_ids.empty()) {
      inputs.insert_or_assign("type_ids", Tensor(DType::i32, {static_cast<int64_t>(ids.size())}));
    } else {
      if (type_ids.size() != ids.size())
        throw Error(ErrorKind::invalid_argument, "the batch has {} tokens, but {} token types", ids.size(), type_ids.size());
      check_range(type_ids, config.type_vocab_size, cu_seqlens, "token type", "type_vocab_size");
      inputs.insert_or_assign("type_ids", copy_of(type_ids));
    }
  }
  const size_t sequences = cu_seqlens.size() - 1;
  Tensor positions(DType::i32, {static_cast<int64_t>(ids.size())});
  for (size_t s = 0; s < sequences; ++s) {
    const auto row =
        positions.as<int32_t>().subspan(static_cast<size_t>(cu_seqlens[s]), static_cast<size_t>(cu_seqlens[s + 1] - cu_seqlens[s]));
    for (size_t t = 0; t < row.size(); ++t) row[t] = static_cast<int32_t>(config.position_offset() + static_cast<int64_t>(t));
  }
  inputs.insert_or_assign("ids", copy_of(ids));
  inputs.insert_or_assign("position_ids", std::move(positions));
  inputs.insert_or_assign("cu_seqlens", copy_of(cu_seqlens));
  inputs.insert_or_assign("first_rows", copy_of(cu_seqlens.first(sequences)));
  return inputs;
}

void add_labels(Inputs& inputs, const ModelConfig& config, std::span<const int32_t> labels, std::span<const float> sample_weights) {
  const auto first_rows = inputs.find("first_rows");
  MUSTER_ASSERT(first_rows != inputs.end());
  const int64_t sequences = first_rows->second.elements();
  if (static_cast<int64_t>(labels.size()) != sequences || static_cast<int64_t>(sample_weights.size()) != sequences)
    throw Error(ErrorKind::invalid_argument, "the batch has {} sequences, but {} labels and {} sample weights", sequences, labels.size(),
                sample_weights.size());
  for (size_t s = 0; s < labels.size(); ++s)
    if (labels[s] >= config.num_labels())
      throw Error(ErrorKind::invalid_argument, "sequence {} of the batch has label {}; the model has {} labels", s, labels[s],
                  config.num_labels());
  inputs.insert_or_assign("labels", copy_of(labels));
  inputs.insert_or_assign("sample_weights", copy_of(sample_weights));
}

}  // namespace muster::models
