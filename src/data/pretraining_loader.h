// Batches of pre-training data from shards: which sequences, in which order, masked how. Batch i is a function of the options and i alone,
// so a run resumes by a number. A few shards are in memory at a time; the next batch is read while the present one is trained on.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/masking.h"
#include "text/token_batch.h"

namespace muster::data {

struct PretrainingBatch {
  text::TokenBatch tokens;                        // with the masks in place
  std::vector<int32_t> masked_positions;          // [P] in tokens.ids, rising
  std::vector<int32_t> masked_labels;             // [P]
  std::vector<int32_t> next_sentence;             // [B] 1: the second segment is a random one; empty: the shards do not say
  std::vector<std::pair<int32_t, int64_t>> rows;  // [B] shard (by its number in files()) and row
};

struct PretrainingLoaderOptions {
  std::vector<std::string> files;
  int64_t batch_size = 8;  // sequences of one rank
  uint64_t seed = 0;
  int rank = 0, world_size = 1;
  bool shuffle = true;           // else in the order of the files, the last batch may be short: evaluation
  bool remask = false;           // mask anew in each epoch; shards without masks always are
  MaskingOptions masking;        // mask_id, vocab_size and special are needed when masks are made here
  bool skip_bad_shards = false;  // leave out files that cannot be read, else they are errors
  int64_t max_seq_length = 0;    // 0: any; else a longer row is an error
};

class PretrainingLoader {
 public:
  /// Looks at the size of each file. Throws Error(corrupt|not_found) naming one that is no shard, Error(invalid_argument) when there are
  /// fewer sequences than one batch of all ranks.
  explicit PretrainingLoader(PretrainingLoaderOptions options);
  ~PretrainingLoader();
  PretrainingLoader(const PretrainingLoader&) = delete;
  PretrainingLoader& operator=(const PretrainingLoader&) = delete;

  /// Shuffled: what does not fill a batch of all ranks is left to the next epoch's other order.
  [[nodiscard]] int64_t batches_per_epoch() const;
  [[nodiscard]] int64_t sequences() const;
  [[nodiscard]] const std::vector<std::string>& files() const;
  [[nodiscard]] int64_t bad_shards() const;

  /// Batch `index` of this rank, counted over the epochs. Throws Error(corrupt) naming shard and row.
  PretrainingBatch batch(int64_t index);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::data
