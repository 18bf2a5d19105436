// The byte-level BPE model: the bytes of a word become tokens by merging the pair of lowest rank, again and again.
// Source: models/bpe of the Rust library; Sennrich 2016; the byte alphabet is GPT-2's.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/vocab.h"
#include "text/wordpiece.h"

namespace muster::text {

/// The code point that stands for a byte in GPT-2's vocabulary files: itself where it is printable, else U+0100 and up.
char32_t byte_symbol(unsigned char byte);
/// The byte that `code` stands for, -1 when it stands for none.
int symbol_byte(char32_t code);

class Bpe {
 public:
  struct Options {
    std::string unk_token;  // empty: bytes that are not in the vocabulary vanish, as in the Rust library
    bool fuse_unk = false;
    bool ignore_merges = false;
  };

  /// merges: by rank. `where` names the file for errors.
  /// Throws Error(corrupt) when a side or the result of a merge, or the unknown token, is not in the vocabulary.
  Bpe(const Vocab& vocab, const std::vector<std::pair<std::string, std::string>>& merges, Options options, std::string_view where);

  /// Appends the tokens of `word` (raw bytes, not yet symbols) to `out`.
  void tokenize(std::string_view word, std::vector<Piece>& out) const;

  [[nodiscard]] int32_t unk_id() const { return unk_id_; }

 private:
  struct Merge {
    uint64_t pair = kFree;
    int32_t rank = 0;
    int32_t id = 0;
  };
  static constexpr uint64_t kFree = ~uint64_t{0};
  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  [[nodiscard]] const Merge* find(int32_t left, int32_t right) const;
  void insert(uint64_t pair, int32_t rank, int32_t id);
  void merge_short(std::vector<Piece>& out, size_t first) const;
  void merge_long(std::vector<Piece>& out, size_t first) const;

  Options options_;
  int32_t unk_id_ = -1;
  std::array<int32_t, 256> byte_ids_{};
  std::vector<Merge> merges_;  // open addressing
  StringTable whole_;          // raw bytes of every token; only with ignore_merges
};

}  // namespace muster::text
