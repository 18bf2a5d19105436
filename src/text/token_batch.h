// A batch of token sequences packed back to back, without padding: what every encoder of muster eats.
// Making the ids is tokenizer.h; grouping texts into batches is data/ and serve/.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace muster::text {

/// ids, type_ids: [T] i32, sequence after sequence. cu_seqlens: [B + 1] i32, rising, first 0, last T.
/// max_seqlen: the longest sequence, 0 when there is none.
struct TokenBatch {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;
  std::vector<int32_t> cu_seqlens{0};
  int32_t max_seqlen = 0;

  [[nodiscard]] int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
  [[nodiscard]] int64_t sequences() const { return static_cast<int64_t>(cu_seqlens.size()) - 1; }

  /// Adds one sequence at the end. An empty type_ids_of means all zero (a single text).
  /// Throws Error(invalid_argument) when the two lengths differ, Error(too_large) when T would pass 2^31 - 1; the batch is then unchanged.
  void append(std::span<const int32_t> ids_of, std::span<const int32_t> type_ids_of = {});

  /// Back to no sequence at all; keeps the memory.
  void clear();
};

}  // namespace muster::text
