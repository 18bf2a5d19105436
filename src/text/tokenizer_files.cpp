// Reads tokenizers of folders without tokenizer.json (vocab.txt; vocab.json with merges.txt), and what tokenizer_config.json and
// special_tokens_map.json say. The pipelines are those that BertTokenizerFast and RobertaTokenizerFast of Transformers build.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "text/pipeline.h"
#include "text/text_file.h"

namespace muster::text {

namespace {

using Json = nlohmann::json;

/// An object, or an empty one when the file is not there.
Json read_object(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return Json::object();
  Json json;
  try {
    json = Json::parse(read_text_file(file));
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::corrupt, "[tokenizer] {}: not JSON: {}", file.string(), error.what());
  }
  if (!json.is_object()) throw Error(ErrorKind::corrupt, "[tokenizer] {}: must be an object", file.string());
  return json;
}

bool flag(const Json& config, const char* key, bool otherwise) {
  const auto found = config.find(key);
  return found != config.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

/// The name of a special token: "[CLS]" or {"content": "[CLS]", ...}; empty when there is none.
std::string token_name(const Json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  if (found->is_object() && found->contains("content") && (*found)["content"].is_string()) return (*found)["content"].get<std::string>();
  return {};
}

/// Lines without their line ends (LF or CR LF); other line separators of Unicode are part of a token.
std::vector<std::string_view> lines_of(std::string_view bytes) {
  std::vector<std::string_view> lines;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    std::string_view line = bytes.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
  }
  return lines;
}

struct Names {
  std::string pad, unk, cls, sep, mask;
};

Names names_of(const Json& config, Names names) {
  for (const auto& [key, name] :
       {std::pair{"pad_token", &names.pad}, std::pair{"unk_token", &names.unk}, std::pair{"cls_token", &names.cls},
        std::pair{"sep_token", &names.sep}, std::pair{"mask_token", &names.mask}}) {
    const std::string given = token_name(config, key);
    if (!given.empty()) *name = given;
  }
  return names;
}

TemplatePiece special_piece(const std::filesystem::path& folder, const Vocab& vocab, const std::string& token, int32_t type_id) {
  const int32_t id = vocab.find(token);
  if (id < 0) throw Error(ErrorKind::corrupt, "[tokenizer] {}: the special token '{}' is not in the vocabulary", folder.string(), token);
  return {-1, type_id, {id}, {token}};
}

/// The special tokens that are in the vocabulary, then what added_tokens.json says.
std::vector<AddedToken> added_tokens_of(const std::filesystem::path& folder, const Names& names, bool mask_takes_space, Vocab& vocab) {
  std::vector<AddedToken> tokens;
  const auto known = [&](int32_t id) { return std::any_of(tokens.begin(), tokens.end(), [&](const AddedToken& t) { return t.id == id; }); };
  for (const std::string* name : {&names.unk, &names.sep, &names.pad, &names.cls, &names.mask}) {
    const int32_t id = vocab.find(*name);
    if (id < 0 || name->empty() || known(id)) continue;
    tokens.push_back({*name, id, true, false, mask_takes_space && name == &names.mask, false, false});
  }
  const Json added = read_object(folder / "added_tokens.json");
  for (const auto& [token, id] : added.items()) {
    if (!id.is_number_integer()) {
      throw Error(ErrorKind::corrupt, "[tokenizer] {}: the id of '{}' must be an integer", (folder / "added_tokens.json").string(), token);
    }
    const bool huge = id.is_number_unsigned() && id.get<uint64_t>() > static_cast<uint64_t>(Vocab::kMaxId);
    vocab.add(token, huge ? Vocab::kMaxId + 1 : id.get<int64_t>());
    const int32_t found = vocab.find(token);
    if (token.empty() || known(found)) continue;
    const bool special = token == names.unk || token == names.sep || token == names.pad || token == names.cls || token == names.mask;
    tokens.push_back({token, found, special, false, mask_takes_space && token == names.mask, false, !special});
  }
  return tokens;
}

}  // namespace

void read_vocab_txt(const std::filesystem::path& folder, Pipeline& pipeline) {
  const std::filesystem::path file = folder / "vocab.txt";
  const std::string bytes = read_text_file(file);
  const std::vector<std::string_view> lines = lines_of(bytes);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (pipeline.vocab.find(lines[i]) >= 0) {
      throw Error(ErrorKind::corrupt, "[tokenizer] {}:{}: the token '{}' is already on line {}", file.string(), i + 1, lines[i],
                  pipeline.vocab.find(lines[i]) + 1);
    }
    pipeline.vocab.add(lines[i], static_cast<int64_t>(i));
  }
  const Json config = read_object(folder / "tokenizer_config.json");
  const Names names = names_of(config, {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"});
  BertNormalizer flags;
  flags.lowercase = flag(config, "do_lower_case", true);
  flags.strip_accents = flag(config, "strip_accents", flags.lowercase);
  flags.handle_chinese_chars = flag(config, "tokenize_chinese_chars", true);
  pipeline.normalizer.add(flags);
  pipeline.pre_tokenizer.add(PreTokenizerStep::bert);
  WordPiece::Options options;
  options.unk_token = names.unk;
  pipeline.model.emplace<WordPiece>(pipeline.vocab, options);
  pipeline.added = AddedTokens(added_tokens_of(folder, names, false, pipeline.vocab), pipeline.normalizer);
  const TemplatePiece cls = special_piece(file, pipeline.vocab, names.cls, 0);
  const TemplatePiece sep = special_piece(file, pipeline.vocab, names.sep, 0);
  pipeline.post_processor.single = {cls, {0, 0, {}, {}}, sep};
  pipeline.post_processor.pair = {cls, {0, 0, {}, {}}, sep, {1, 1, {}, {}}, special_piece(file, pipeline.vocab, names.sep, 1)};
}

void read_vocab_and_merges(const std::filesystem::path& folder, Pipeline& pipeline) {
  const std::filesystem::path vocab_file = folder / "vocab.json";
  const Json vocab = read_object(vocab_file);
  for (const auto& [token, id] : vocab.items()) {
    if (!id.is_number_integer()) {
      throw Error(ErrorKind::corrupt, "[tokenizer] {}: the id of '{}' must be an integer", vocab_file.string(), token);
    }
    const bool huge = id.is_number_unsigned() && id.get<uint64_t>() > static_cast<uint64_t>(Vocab::kMaxId);
    pipeline.vocab.add(token, huge ? Vocab::kMaxId + 1 : id.get<int64_t>());
  }
  const std::filesystem::path merges_file = folder / "merges.txt";
  const std::string bytes = read_text_file(merges_file);
  const std::vector<std::string_view> lines = lines_of(bytes);
  std::vector<std::pair<std::string, std::string>> merges;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty() || lines[i].substr(0, 8) == "#version") continue;
    const size_t space = lines[i].find(' ');
    if (space == std::string_view::npos || lines[i].find(' ', space + 1) != std::string_view::npos) {
      throw Error(ErrorKind::corrupt, "[tokenizer] {}:{}: must be two tokens with a space between", merges_file.string(), i + 1);
    }
    merges.emplace_back(lines[i].substr(0, space), lines[i].substr(space + 1));
  }
  const Json config = read_object(folder / "tokenizer_config.json");
  const Names names = names_of(config, {"<pad>", "<unk>", "<s>", "</s>", "<mask>"});
  const bool prefix = flag(config, "add_prefix_space", false);
  pipeline.pre_tokenizer.add(ByteLevelOptions{prefix, true});
  pipeline.model.emplace<Bpe>(pipeline.vocab, merges, Bpe::Options{}, merges_file.string());
  pipeline.added = AddedTokens(added_tokens_of(folder, names, true, pipeline.vocab), pipeline.normalizer);
  const TemplatePiece cls = special_piece(vocab_file, pipeline.vocab, names.cls, 0);
  const TemplatePiece sep = special_piece(vocab_file, pipeline.vocab, names.sep, 0);
  pipeline.post_processor.single = {cls, {0, 0, {}, {}}, sep};
  pipeline.post_processor.pair = {cls, {0, 0, {}, {}}, sep, sep, {1, 0, {}, {}}, sep};
  pipeline.post_processor.trim_offsets = flag(config, "trim_offsets", true);
  pipeline.post_processor.add_prefix_space = prefix;
}

void read_special_tokens(const std::filesystem::path& folder, Pipeline& pipeline) {
  const Json config = read_object(folder / "tokenizer_config.json");
  const Json map = read_object(folder / "special_tokens_map.json");
  if (config.value("truncation_side", Json("right")) == "left") {
    throw Error(ErrorKind::unsupported, "[tokenizer] {}: truncation_side 'left' is not supported; muster cuts at the right",
                (folder / "tokenizer_config.json").string());
  }
  const Names names = names_of(config, names_of(map, {}));
  const auto find = [&](const std::string& given, std::initializer_list<std::string_view> customary) -> std::optional<int32_t> {
    if (!given.empty() && pipeline.vocab.find(given) >= 0) return pipeline.vocab.find(given);
    for (const std::string_view name : customary) {
      if (pipeline.vocab.find(name) >= 0) return pipeline.vocab.find(name);
    }
    return std::nullopt;
  };
  pipeline.special.pad = find(names.pad, {"[PAD]", "<pad>"});
  pipeline.special.cls = find(names.cls, {"[CLS]", "<s>"});
  pipeline.special.sep = find(names.sep, {"[SEP]", "</s>"});
  pipeline.special.mask = find(names.mask, {"[MASK]", "<mask>"});
  pipeline.special.unk = find(names.unk, {"[UNK]", "<unk>"});
  const auto length = config.find("model_max_length");
  if (length == config.end() || !length->is_number()) return;
  const double value = length->get<double>();
  constexpr double kNone = 1e9;  // Transformers writes 1e30 for "no limit"
  if (value >= 1 && value < kNone) pipeline.model_max_length = static_cast<int>(value);
}

}  // namespace muster::text
