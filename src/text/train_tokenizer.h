// From a body of text to the files of a tokenizer, as a model folder has them.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/threads.h"

namespace muster::text {

enum class TokenizerType : uint8_t { wordpiece, bpe };

struct TrainTokenizerOptions {
  TokenizerType type = TokenizerType::wordpiece;
  int64_t vocab_size = 30522;
  int64_t min_frequency = 2;
  int64_t limit_alphabet = 1000;            // wordpiece
  bool cased = false;                       // wordpiece: keep case and accents
  int max_length = 512;                     // model_max_length of the configuration
  std::vector<std::string> special_tokens;  // more of them, after those of BERT or RoBERTa
};

struct TrainedTokenizer {
  int64_t words = 0, distinct_words = 0, tokens = 0, merges = 0;
};

/// Hands over texts: calls `add` with each. A text is UTF-8 and stays where it is during the call.
using EachText = std::function<void(const std::function<void(std::string_view)>& add)>;

/// Learns the vocabulary of `texts` and writes the folder `output` (new; a folder in its place is an error): tokenizer.json,
/// tokenizer_config.json, special_tokens_map.json, and vocab.txt (wordpiece, as BertTokenizerFast) or vocab.json and merges.txt
/// (byte-level BPE, as RobertaTokenizerFast). The files depend on nothing but texts and options. `progress` gets a line now and then.
/// Throws Error: usage (vocab_size, a special token given twice), invalid_argument (no words), cancelled, io.
TrainedTokenizer train_tokenizer(const EachText& texts, const TrainTokenizerOptions& options, const std::string& output,
                                 ThreadPool& threads, const std::atomic<bool>* stop,
                                 const std::function<void(const std::string&)>& progress);

}  // namespace muster::text
