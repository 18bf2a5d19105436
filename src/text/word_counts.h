// How often each word occurs in a body of text, for training vocabularies. What is a word is the business of normalizer and
// pre_tokenizer; what is done with the counts is merges.h.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/threads.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"

namespace muster::text {

struct CountedWord {
  std::string word;
  int64_t count = 0;
};

class WordCounts {
 public:
  /// The three must outlive the object.
  WordCounts(const Normalizer& normalizer, const PreTokenizer& pre_tokenizer, ThreadPool& threads);
  ~WordCounts();
  WordCounts(const WordCounts&) = delete;
  WordCounts& operator=(const WordCounts&) = delete;

  /// Counts the words of `text` (UTF-8; what is not is read as U+FFFD). Every line counts as a text of its own, as the trainers of the
  /// Rust library read files. Large texts are counted by all threads. Throws Error(cancelled) when `stop` is set meanwhile,
  /// Error(too_large) when there are more distinct words than an eighth of the memory could hold.
  void add(std::string_view text, const std::atomic<bool>* stop = nullptr);

  /// Every word once, sorted by its bytes: the same for any number of threads and any order of texts.
  [[nodiscard]] std::vector<CountedWord> words() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::text
