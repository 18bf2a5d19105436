// The WordPiece model: a word becomes its longest known pieces from the left, or one unknown token.
// Source: models/wordpiece of the Rust library; Schuster and Nakajima 2012.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocab.h"

namespace muster::text {

/// A token of a word: bytes [begin, end) of it.
struct Piece {
  int32_t id;
  uint32_t begin;
  uint32_t end;
};

class WordPiece {
 public:
  struct Options {
    std::string unk_token = "[UNK]";
    std::string continuing_subword_prefix = "##";
    int64_t max_input_chars_per_word = 100;
  };

  /// Throws Error(corrupt) when the vocabulary lacks the unknown token.
  WordPiece(const Vocab& vocab, Options options);

  /// Appends the pieces of `word` (not empty, valid UTF-8) to `out`.
  void tokenize(std::string_view word, std::vector<Piece>& out) const;

  [[nodiscard]] int32_t unk_id() const { return unk_id_; }
  [[nodiscard]] const Options& options() const { return options_; }

 private:
  Options options_;
  int32_t unk_id_ = -1;
  StringTable first_;      // tokens as they are
  StringTable following_;  // tokens that start with the prefix, without it
};

}  // namespace muster::text
