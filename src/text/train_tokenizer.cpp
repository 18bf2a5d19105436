// See train_tokenizer.h. The pipelines are those of BertTokenizerFast and RobertaTokenizerFast of Transformers.
#include "text/train_tokenizer.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "storage/file.h"
#include "text/merges.h"
#include "text/word_counts.h"

namespace muster::text {

namespace {

using Json = nlohmann::ordered_json;

struct SpecialNames {
  std::string pad, unk, cls, sep, mask;
};

const SpecialNames& names_of(TokenizerType type) {
  static const SpecialNames bert{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  static const SpecialNames roberta{"<pad>", "<unk>", "<s>", "</s>", "<mask>"};
  return type == TokenizerType::wordpiece ? bert : roberta;
}

/// In the order of their ids: that of the published vocabularies.
std::vector<std::string> special_tokens(const TrainTokenizerOptions& options) {
  const SpecialNames& n = names_of(options.type);
  std::vector<std::string> tokens = options.type == TokenizerType::wordpiece ? std::vector<std::string>{n.pad, n.unk, n.cls, n.sep, n.mask}
                                                                             : std::vector<std::string>{n.cls, n.pad, n.sep, n.unk, n.mask};
  for (const std::string& token : options.special_tokens) {
    if (token.empty() || std::find(tokens.begin(), tokens.end(), token) != tokens.end())
      throw Error(ErrorKind::usage, "--special_tokens: '{}' is {}", token, token.empty() ? "empty" : "there already");
    tokens.push_back(token);
  }
  return tokens;
}

Json normalizer_json(const TrainTokenizerOptions& options) {
  if (options.type == TokenizerType::bpe) return nullptr;
  return {{"type", "BertNormalizer"},
          {"clean_text", true},
          {"handle_chinese_chars", true},
          {"strip_accents", nullptr},
          {"lowercase", !options.cased}};
}

Json byte_level_json() { return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}; }

Json post_processor_json(const TrainTokenizerOptions& options, int64_t cls, int64_t sep) {
  const SpecialNames& n = names_of(options.type);
  if (options.type == TokenizerType::bpe)
    return {{"type", "RobertaProcessing"},
            {"sep", Json::array({n.sep, sep})},
            {"cls", Json::array({n.cls, cls})},
            {"trim_offsets", true},
            {"add_prefix_space", false}};
  const auto special = [](const std::string& name, int type_id) { return Json{{"SpecialToken", {{"id", name}, {"type_id", type_id}}}}; };
  const auto sequence = [](const char* name, int type_id) { return Json{{"Sequence", {{"id", name}, {"type_id", type_id}}}}; };
  const auto entry = [](const std::string& name, int64_t id) {
    return Json{{"id", name}, {"ids", Json::array({id})}, {"tokens", Json::array({name})}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", Json::array({special(n.cls, 0), sequence("A", 0), special(n.sep, 0)})},
          {"pair", Json::array({special(n.cls, 0), sequence("A", 0), special(n.sep, 0), sequence("B", 1), special(n.sep, 1)})},
          {"special_tokens", {{n.cls, entry(n.cls, cls)}, {n.sep, entry(n.sep, sep)}}}};
}

/// {token: id, ...} by id. Tokens are distinct: each is appended without a search for it.
Json vocab_json(const std::vector<std::string>& tokens) {
  Json::object_t vocab;
  for (size_t id = 0; id < tokens.size(); ++id) vocab.emplace_back(tokens[id], id);
  return vocab;
}

Json model_json(const TrainTokenizerOptions& options, const Merges& learned) {
  Json vocab = vocab_json(learned.tokens);
  if (options.type == TokenizerType::wordpiece)
    return {{"type", "WordPiece"},
            {"unk_token", names_of(options.type).unk},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100},
            {"vocab", std::move(vocab)}};
  Json merges = Json::array();
  for (const auto& [left, right] : learned.merges)
    merges.push_back(Json::array({learned.tokens[static_cast<size_t>(left)], learned.tokens[static_cast<size_t>(right)]}));
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", ""},
          {"end_of_word_suffix", ""},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocab)},
          {"merges", std::move(merges)}};
}

Json tokenizer_json(const TrainTokenizerOptions& options, const Merges& learned, const std::vector<std::string>& special) {
  const SpecialNames& n = names_of(options.type);
  const auto id_of = [&](const std::string& token) { return std::find(special.begin(), special.end(), token) - special.begin(); };
  Json added = Json::array();
  for (const std::string& token : special)
    added.push_back({{"id", id_of(token)},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", options.type == TokenizerType::bpe && token == n.mask},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  const bool bpe = options.type == TokenizerType::bpe;
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", std::move(added)},
          {"normalizer", normalizer_json(options)},
          {"pre_tokenizer", bpe ? byte_level_json() : Json{{"type", "BertPreTokenizer"}}},
          {"post_processor", post_processor_json(options, id_of(n.cls), id_of(n.sep))},
          {"decoder", bpe ? byte_level_json() : Json{{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"model", model_json(options, learned)}};
}

void write_files(const TrainTokenizerOptions& options, const Merges& learned, const std::vector<std::string>& special,
                 const std::string& folder) {
  const SpecialNames& n = names_of(options.type);
  const auto write = [&](const std::string& name, const std::string& content) { storage::write_file_atomic(folder + "/" + name, content); };
  const auto dump = [](const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n"; };
  Json map{{"pad_token", n.pad}, {"unk_token", n.unk}, {"cls_token", n.cls}, {"sep_token", n.sep}, {"mask_token", n.mask}};
  if (options.type == TokenizerType::bpe) map.update({{"bos_token", n.cls}, {"eos_token", n.sep}});
  if (!options.special_tokens.empty()) map["additional_special_tokens"] = options.special_tokens;
  Json config = map;
  config["model_max_length"] = options.max_length;
  if (options.type == TokenizerType::wordpiece) {
    config.update({{"tokenizer_class", "BertTokenizerFast"}, {"do_lower_case", !options.cased}, {"tokenize_chinese_chars", true}});
    config["strip_accents"] = nullptr;
    std::string lines;
    for (const std::string& token : learned.tokens) lines += token + "\n";
    write("vocab.txt", lines);
  } else {
    config.update({{"tokenizer_class", "RobertaTokenizerFast"}, {"add_prefix_space", false}, {"trim_offsets", true}});
    write("vocab.json", dump(vocab_json(learned.tokens), -1));
    std::string lines = "#version: 0.2\n";
    for (const auto& [left, right] : learned.merges)
      lines += learned.tokens[static_cast<size_t>(left)] + " " + learned.tokens[static_cast<size_t>(right)] + "\n";
    write("merges.txt", lines);
  }
  write("tokenizer.json", dump(tokenizer_json(options, learned, special), 2));
  write("tokenizer_config.json", dump(config, 2));
  write("special_tokens_map.json", dump(map, 2));
}

}  // namespace

TrainedTokenizer train_tokenizer(const EachText& texts, const TrainTokenizerOptions& options, const std::string& output,
                                 ThreadPool& threads, const std::atomic<bool>* stop,
                                 const std::function<void(const std::string&)>& progress) {
  const std::vector<std::string> special = special_tokens(options);
  storage::AtomicFolder folder(output);
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  if (options.type == TokenizerType::wordpiece) {
    normalizer.add(BertNormalizer{true, true, !options.cased, !options.cased});
    pre_tokenizer.add(PreTokenizerStep::bert);
  } else {
    pre_tokenizer.add(ByteLevelOptions{false, true});
  }
  WordCounts counts(normalizer, pre_tokenizer, threads);
  texts([&](std::string_view text) { counts.add(text, stop); });
  const std::vector<CountedWord> words = counts.words();
  TrainedTokenizer result;
  result.distinct_words = static_cast<int64_t>(words.size());
  for (const CountedWord& word : words) result.words += word.count;
  if (words.empty()) throw Error(ErrorKind::invalid_argument, "there are no words to learn from: the texts are empty");
  progress(fmt::format("{} words, {} distinct", result.words, result.distinct_words));

  MergeOptions merge;
  merge.vocab_size = options.vocab_size;
  merge.min_frequency = options.min_frequency;
  merge.first = special;
  merge.bytes = options.type == TokenizerType::bpe;
  if (!merge.bytes) merge.prefix = "##", merge.limit_alphabet = options.limit_alphabet;
  const Merges learned = learn_merges(words, merge, stop, [&](int64_t tokens) { progress(fmt::format("{} tokens", tokens)); });
  result.tokens = static_cast<int64_t>(learned.tokens.size());
  result.merges = static_cast<int64_t>(learned.merges.size());
  write_files(options, learned, special, folder.path());
  folder.commit();
  return result;
}

}  // namespace muster::text
