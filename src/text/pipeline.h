// The parts of one tokenizer in the order in which text passes them. tokenizer_json.cpp and tokenizer_files.cpp build it,
// tokenizer.cpp runs it; nothing changes it in between.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/vocab.h"
#include "text/wordpiece.h"

namespace muster::text {

struct SpecialIds {
  std::optional<int32_t> pad, unk, cls, sep, mask;
};

struct Pipeline {
  Vocab vocab;  // with the added tokens
  AddedTokens added;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::variant<std::monostate, WordPiece, Bpe> model;
  PostProcessor post_processor;

  SpecialIds special;
  std::optional<int> model_max_length;
  std::optional<int> truncation_length;
  std::vector<std::filesystem::path> files;
};

/// Fills everything but special, model_max_length and files from a tokenizer.json.
void read_tokenizer_json(const std::filesystem::path& file, Pipeline& pipeline);

/// The same from vocab.txt, or from vocab.json and merges.txt, with the flags of tokenizer_config.json.
void read_vocab_txt(const std::filesystem::path& folder, Pipeline& pipeline);
void read_vocab_and_merges(const std::filesystem::path& folder, Pipeline& pipeline);

/// special and model_max_length, from tokenizer_config.json and special_tokens_map.json, with the customary names as a last resort.
void read_special_tokens(const std::filesystem::path& folder, Pipeline& pipeline);

}  // namespace muster::text
