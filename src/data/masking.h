// Which words of a sequence are masked, and by what: 15 % of them, of these 80 % by the mask token, 10 % by a random word, 10 % not at
// all. Source: Devlin et al. 2019, section 3.1 and create_pretraining_data.py; whole words: the update of May 2019.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/philox.h"

namespace muster::data {

struct MaskingOptions {
  double probability = 0.15;
  int64_t max_predictions = 0;  // of a sequence; 0: no limit
  bool whole_words = false;
  int32_t mask_id = 0;
  int64_t vocab_size = 0;
  std::vector<bool> special;    // [vocab] never masked
  std::vector<bool> continues;  // [vocab] a piece inside a word; needed for whole words only
};

struct Masked {
  std::vector<int32_t> ids;        // with the masks in place
  std::vector<int32_t> positions;  // rising
  std::vector<int32_t> labels;     // what stood there
};

/// max(1, round(probability * tokens)) positions, no more than max_predictions, none where there is nothing to mask.
Masked mask(std::span<const int32_t> ids, const MaskingOptions& options, Philox& random);

}  // namespace muster::data
