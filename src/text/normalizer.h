// Normalizers: what happens to the text before it is split. Splitting is pre_tokenizer.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/normalized.h"

namespace muster::text {

/// Flags of BertNormalizer, in the order in which they act.
struct BertNormalizer {
  bool clean_text = true;            // drop U+0000, U+FFFD and controls, make every white space a space
  bool handle_chinese_chars = true;  // spaces around CJK ideographs
  bool strip_accents = true;         // NFD, then drop Mn ("null" in the file means: as lowercase)
  bool lowercase = true;
};

enum class NormalizerStep : uint8_t { bert, lowercase, nfd, nfkd, strip_accents };

/// The normalizers of one tokenizer, applied in order.
class Normalizer {
 public:
  void add(NormalizerStep step) { steps_.push_back(step); }
  void add(const BertNormalizer& flags) {
    bert_ = flags;
    steps_.push_back(NormalizerStep::bert);
  }
  [[nodiscard]] bool empty() const { return steps_.empty(); }
  [[nodiscard]] bool has_bert() const;

  void apply(Normalized& piece) const;

 private:
  std::vector<NormalizerStep> steps_;
  BertNormalizer bert_;
};

}  // namespace muster::text
