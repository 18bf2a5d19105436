// Which rows make which batch of which epoch, as a pure function of seed, epoch and index. Reading files is dataset.h.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "data/tokenize.h"
#include "text/token_batch.h"

namespace muster::data {

struct LoaderOptions {
  int64_t batch_size = 8;        // rows a rank
  bool shuffle = true;           // another permutation each epoch, from seed and epoch only
  bool group_by_length = false;  // rows of like length meet in a batch: sorted inside mega-batches of 50 batches, the longest row first
  bool drop_last = false;        // leave out the last batch when it is not full
  uint64_t seed = 42;
  // A global batch of batch_size * world_size rows is dealt out row by row, so that N ranks together see what one rank with an N times
  // larger batch_size sees. A last batch with fewer rows than ranks leaves some ranks an empty one.
  int rank = 0;
  int world_size = 1;
  int64_t max_tokens = 0;  // > 0: a batch also ends before it would pass this (a longer row stands alone); one rank and not shuffled only
};

struct Batch {
  text::TokenBatch tokens;
  std::vector<int32_t> labels;  // [B], -1 where there is none
  std::vector<int64_t> rows;    // [B], of the dataset
};

/// Immutable to its callers and safe for several threads; the dataset must outlive it.
class Loader {
 public:
  /// Throws Error(invalid_argument) on options out of range or an empty dataset.
  Loader(const TokenizedDataset& dataset, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The same for every epoch and rank.
  [[nodiscard]] int64_t batches_per_epoch() const;
  /// No state is kept between calls except the order of the epoch last asked for: any batch costs the same, so a resumed run goes on at
  /// once and exactly. index: [0, batches_per_epoch()).
  [[nodiscard]] Batch batch(int64_t epoch, int64_t index) const;
  [[nodiscard]] const LoaderOptions& options() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::data
