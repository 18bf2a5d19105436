// A whole dataset as token ids, made once up front. Grouping rows into batches is loader.h.
#pragma once
#include <cstdint>
#include <vector>

#include "core/threads.h"
#include "data/dataset.h"
#include "text/token_batch.h"
#include "text/tokenizer.h"

namespace muster::data {

/// Rows of a dataset as tokens, with their labels: tokens.cu_seqlens has one sequence a row.
struct TokenizedDataset {
  text::TokenBatch tokens;
  std::vector<int32_t> labels;
  int64_t truncated = 0;  // rows that were cut at max_length

  [[nodiscard]] int64_t rows() const { return tokens.sequences(); }
};

/// Tokenises every row (pairs where the dataset has them), special tokens included, cut to max_length. The result does not depend on
/// the pool. Throws what the tokenizer throws, and Error(too_large) past 2^31 - 1 tokens in all.
TokenizedDataset tokenize(const Dataset& dataset, const text::Tokenizer& tokenizer, int max_length, ThreadPool& pool);

}  // namespace muster::data
