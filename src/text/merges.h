// Learning a vocabulary from counted words: start from the letters, join the commonest pair of neighbours, again and again.
// Source: Sennrich 2016; ties and limits as trainers/bpe of the Rust `tokenizers` library, whose WordPiece trainer is the same with a
// prefix. Counting is word_counts.h, files are train_tokenizer.h.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "text/word_counts.h"

namespace muster::text {

struct MergeOptions {
  int64_t vocab_size = 30522;      // tokens in all, those of `first` and the letters included
  int64_t min_frequency = 2;       // a pair that is rarer is not joined
  int64_t limit_alphabet = 0;      // keep the commonest letters only, so many; 0: all
  std::string prefix;              // of a letter that does not begin a word ("##"); byte-level BPE has none
  bool bytes = false;              // letters are GPT-2's symbols of the 256 bytes, all of them there from the start; else code points
  std::vector<std::string> first;  // special tokens: they get the first ids
};

struct Merges {
  std::vector<std::string> tokens;                  // by id
  std::vector<std::pair<int32_t, int32_t>> merges;  // ids of both sides, by rank
};

/// Deterministic. Of pairs equally common, the one of smaller ids is joined first. `progress` gets the tokens there are, now and then.
/// Throws Error(usage) when vocab_size is smaller than `first` and the alphabet, Error(cancelled) when `stop` is set.
Merges learn_merges(std::span<const CountedWord> words, const MergeOptions& options, const std::atomic<bool>* stop = nullptr,
                    const std::function<void(int64_t)>& progress = {});

}  // namespace muster::text
