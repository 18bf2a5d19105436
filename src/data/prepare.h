// From documents to shards of pre-training data: sentence pairs with next-sentence labels as BERT has them, or blocks of full sentences as
// RoBERTa has them; masked once here, or left to be masked anew in each epoch.
// Sources: Devlin et al. 2019 and create_pretraining_data.py (pairs); Liu et al. 2019, section 4.2, FULL-SENTENCES (blocks).
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/threads.h"
#include "data/documents.h"
#include "data/masking.h"
#include "data/shard.h"
#include "text/tokenizer.h"

namespace muster::data {

struct PrepareOptions {
  std::string output;             // folder of the shards
  std::string prefix = "corpus";  // PREFIX_training_I.hdf5, PREFIX_test_I.hdf5
  bool pairs = true;              // else blocks
  int64_t max_seq_length = 128;
  int64_t max_predictions = 20;  // of a sequence, and the width of the file's tables
  double masked_lm_prob = 0.15;
  bool dynamic = false;  // no masks in the files: they are made on reading
  bool whole_words = false;
  int64_t dupe_factor = 5;      // times the corpus is gone through, each with other masks and cuts; dynamic: 1
  double short_seq_prob = 0.1;  // pairs: share of sequences that aim at a shorter length
  int64_t shards = 8;           // training files
  double test_fraction = 0;     // share of the documents that go into one held-out file
  uint64_t seed = 12345;
};

struct PrepareResult {
  int64_t documents = 0, sentences = 0, tokens = 0;  // of the corpus
  int64_t sequences = 0, shards = 0, reused = 0;     // written; files; of these found from an earlier run
};

/// Writes the shards, each whole or not at all, several at once; what a shard holds depends on corpus, tokenizer and options only. A run
/// that was stopped goes on with what is missing. `progress` is told of each finished shard.
/// Throws Error(usage) for options that do not fit; Error(invalid_argument) when the folder holds shards of other options, or the tokenizer
/// lacks a token that is needed; Error(cancelled) after `stop`.
PrepareResult prepare(const std::vector<Document>& documents, const text::Tokenizer& tokenizer, const PrepareOptions& options,
                      ThreadPool& threads, const std::atomic<bool>* stop = nullptr,
                      const std::function<void(int64_t done, int64_t all)>& progress = {});

/// What masks need to know of a tokenizer: the mask token, what is never masked, which tokens go on inside a word.
/// Throws Error(invalid_argument) when there is no mask token.
MaskingOptions masking_of(const text::Tokenizer& tokenizer);

}  // namespace muster::data
