// Pre-tokenizers: splitting a normalized piece into words. What a word becomes is the model's business (wordpiece, bpe).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/normalized.h"

namespace muster::text {

/// Bytes [begin, end) of a piece's text.
struct Word {
  size_t begin;
  size_t end;
};

enum class PreTokenizerStep : uint8_t { bert, whitespace_split, byte_level };

struct ByteLevelOptions {
  bool add_prefix_space = true;
  bool use_regex = true;
};

/// The pre-tokenizers of one tokenizer, applied in order. byte_level can only be the last.
class PreTokenizer {
 public:
  void add(PreTokenizerStep step) { steps_.push_back(step); }
  void add(const ByteLevelOptions& options) {
    byte_level_ = options;
    steps_.push_back(PreTokenizerStep::byte_level);
  }
  [[nodiscard]] bool has_byte_level() const { return !steps_.empty() && steps_.back() == PreTokenizerStep::byte_level; }
  [[nodiscard]] bool add_prefix_space() const { return has_byte_level() && byte_level_.add_prefix_space; }
  [[nodiscard]] size_t steps() const { return steps_.size(); }

  /// The words of `piece`, none of them empty. Puts the prefix space of ByteLevel into the piece.
  void split(Normalized& piece, std::vector<Word>& words) const;

 private:
  std::vector<PreTokenizerStep> steps_;
  ByteLevelOptions byte_level_;
};

/// Bytes that the first match of GPT-2's pattern takes at `begin` of [begin, end), which is not empty:
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t gpt2_match(std::string_view text, size_t begin, size_t end);

}  // namespace muster::text
