// One file of pre-training data, in the layout of NVIDIA's and AWS's BERT data sets: input_ids, input_mask, segment_ids [N, S],
// masked_lm_positions, masked_lm_ids [N, P], next_sentence_labels [N] (format: NVIDIA DeepLearningExamples, create_pretraining_data.py).
// Padding is dropped on reading. How shards become batches: pretraining_loader.h; how they are made: prepare.h.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace muster::data {

/// Sequences back to back, with the words that were masked. Row r has tokens [starts[r], starts[r + 1]) and masks
/// [mask_starts[r], mask_starts[r + 1]).
struct Shard {
  std::string path;
  int64_t max_tokens = 0, max_masks = 0;  // S and P of the file
  std::vector<int32_t> ids, segments;     // of all tokens
  std::vector<int64_t> starts{0};
  std::vector<int32_t> mask_positions, mask_labels;  // positions inside the row, rising; the words that stood there
  std::vector<int64_t> mask_starts{0};
  std::vector<int32_t> next_labels;  // one a row: 1 when the second segment is a random one; empty: the file has none

  [[nodiscard]] int64_t rows() const { return static_cast<int64_t>(starts.size()) - 1; }
  [[nodiscard]] int64_t length(int64_t row) const { return starts[static_cast<size_t>(row) + 1] - starts[static_cast<size_t>(row)]; }
  [[nodiscard]] std::span<const int32_t> ids_of(int64_t row) const { return tokens(ids, row); }
  [[nodiscard]] std::span<const int32_t> segments_of(int64_t row) const { return tokens(segments, row); }
  [[nodiscard]] std::span<const int32_t> positions_of(int64_t row) const { return masks(mask_positions, row); }
  [[nodiscard]] std::span<const int32_t> labels_of(int64_t row) const { return masks(mask_labels, row); }
  /// Adds a row.
  void append(std::span<const int32_t> row_ids, std::span<const int32_t> row_segments, std::span<const int32_t> positions,
              std::span<const int32_t> labels);

 private:
  [[nodiscard]] std::span<const int32_t> tokens(const std::vector<int32_t>& of, int64_t row) const {
    return std::span(of).subspan(static_cast<size_t>(starts[static_cast<size_t>(row)]), static_cast<size_t>(length(row)));
  }
  [[nodiscard]] std::span<const int32_t> masks(const std::vector<int32_t>& of, int64_t row) const {
    const auto begin = static_cast<size_t>(mask_starts[static_cast<size_t>(row)]),
               end = static_cast<size_t>(mask_starts[static_cast<size_t>(row) + 1]);
    return std::span(of).subspan(begin, end - begin);
  }
};

/// Rows of a shard without reading it. Throws Error(not_found|corrupt) naming the file.
int64_t shard_rows(const std::string& path);

/// Whether a shard has next-sentence labels.
bool has_next_labels(const std::string& path);

/// Reads and checks a shard: sizes that agree, a mask of ones and then zeros, ids below vocab_size (0: not checked), segments 0 or 1,
/// positions rising inside the row, labels 0 or 1. Throws Error(corrupt) naming file, table and row (counted from 0).
Shard read_shard(const std::string& path, int64_t vocab_size = 0);

/// Writes shard.path, padded to max_tokens and max_masks. Throws Error(io), Error(invalid_argument) for a row that does not fit.
void write_shard(const Shard& shard);

/// The shards of a split: files, or of a folder those named *_training_*.hdf5 (split "train") or *_test_*.hdf5 ("test"); all *.hdf5 and
/// *.h5 when no name says a split. Sorted by name. Throws Error(not_found).
std::vector<std::string> list_shards(const std::string& path, const std::string& split);

}  // namespace muster::data
