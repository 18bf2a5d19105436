// Reads tokenizer.json ("version": "1.0") of the Rust library. What muster does not have is refused by name, never guessed.
// Folders without one: tokenizer_files.cpp.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "core/error.h"
#include "text/pipeline.h"
#include "text/text_file.h"
#include "text/tokenizer.h"

namespace muster::text {

namespace {

using Json = nlohmann::json;

/// A value and where it is, so that an error can say so.
struct Node {
  const Json& value;
  std::string path;  // "FILE: post_processor.single"

  [[noreturn]] void fail(std::string_view what) const { throw Error(ErrorKind::corrupt, "[tokenizer] {}: {}", path, what); }
  [[noreturn]] void refuse(std::string_view component) const {
    throw Error(ErrorKind::unsupported, "[tokenizer] {}: {} is not supported; convert the tokenizer or use another model", path, component);
  }

  [[nodiscard]] bool has(const char* key) const { return value.is_object() && value.contains(key) && !value[key].is_null(); }
  [[nodiscard]] Node at(const char* key) const {
    if (!value.is_object() || !value.contains(key)) fail(fmt::format("'{}' is missing", key));
    return {value[key], path + "." + key};
  }
  [[nodiscard]] Node at(size_t index) const { return {value[index], fmt::format("{}[{}]", path, index)}; }

  [[nodiscard]] const std::string& text() const {
    if (!value.is_string()) fail("must be a string");
    return value.get_ref<const std::string&>();
  }
  [[nodiscard]] int64_t integer() const {
    if (!value.is_number_integer()) fail("must be an integer");
    if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      fail("is too large");
    return value.get<int64_t>();
  }
  [[nodiscard]] bool flag() const {
    if (!value.is_boolean()) fail("must be true or false");
    return value.get<bool>();
  }
  [[nodiscard]] size_t list() const {
    if (!value.is_array()) fail("must be a list");
    return value.size();
  }

  [[nodiscard]] bool flag(const char* key, bool otherwise) const { return has(key) ? at(key).flag() : otherwise; }
  [[nodiscard]] std::string text(const char* key, const char* otherwise) const { return has(key) ? at(key).text() : otherwise; }
};

int32_t id_of(const Node& node) {
  const int64_t id = node.integer();
  if (id < 0 || id > Vocab::kMaxId) node.fail(fmt::format("{} is not a token id", id));
  return static_cast<int32_t>(id);
}

int32_t type_id_of(const Node& node) {
  const int64_t id = node.integer();
  if (id < 0 || id > 255) node.fail(fmt::format("{} is not a type id (0 to 255)", id));
  return static_cast<int32_t>(id);
}

constexpr int kMaxDepth = 8;  // of Sequences in Sequences

void read_normalizer(const Node& node, Normalizer& normalizer, int depth = 0) {
  if (node.value.is_null()) return;
  if (depth > kMaxDepth) node.refuse("a Sequence this deep");
  const std::string& type = node.at("type").text();
  if (type == "Sequence") {
    const Node list = node.at("normalizers");
    for (size_t i = 0; i < list.list(); ++i) read_normalizer(list.at(i), normalizer, depth + 1);
  } else if (type == "BertNormalizer") {
    if (normalizer.has_bert()) node.refuse("a second BertNormalizer");
    BertNormalizer flags;
    flags.clean_text = node.flag("clean_text", true);
    flags.handle_chinese_chars = node.flag("handle_chinese_chars", true);
    flags.lowercase = node.flag("lowercase", true);
    flags.strip_accents = node.flag("strip_accents", flags.lowercase);
    normalizer.add(flags);
  } else if (type == "Lowercase") {
    normalizer.add(NormalizerStep::lowercase);
  } else if (type == "NFD") {
    normalizer.add(NormalizerStep::nfd);
  } else if (type == "NFKD") {
    normalizer.add(NormalizerStep::nfkd);
  } else if (type == "StripAccents") {
    normalizer.add(NormalizerStep::strip_accents);
  } else {
    node.refuse(fmt::format("the normalizer '{}'", type));
  }
}

void read_pre_tokenizer(const Node& node, PreTokenizer& pre_tokenizer, int depth = 0) {
  if (node.value.is_null()) return;
  if (depth > kMaxDepth) node.refuse("a Sequence this deep");
  const std::string& type = node.at("type").text();
  if (type == "Sequence") {
    const Node list = node.at("pretokenizers");
    for (size_t i = 0; i < list.list(); ++i) read_pre_tokenizer(list.at(i), pre_tokenizer, depth + 1);
    return;
  }
  if (pre_tokenizer.has_byte_level()) node.refuse(fmt::format("the pre-tokenizer '{}' after ByteLevel", type));
  if (type == "BertPreTokenizer") {
    pre_tokenizer.add(PreTokenizerStep::bert);
  } else if (type == "WhitespaceSplit") {
    pre_tokenizer.add(PreTokenizerStep::whitespace_split);
  } else if (type == "ByteLevel") {
    if (pre_tokenizer.steps() > 0) node.refuse("ByteLevel after another pre-tokenizer");
    pre_tokenizer.add(ByteLevelOptions{node.flag("add_prefix_space", true), node.flag("use_regex", true)});
  } else {
    node.refuse(fmt::format("the pre-tokenizer '{}'", type));
  }
}

void read_vocab(const Node& node, Vocab& vocab) {
  if (!node.value.is_object()) node.fail("must be an object of tokens and ids");
  if (node.value.empty()) node.fail("is empty");
  for (const auto& [token, id] : node.value.items()) {
    if (!id.is_number_integer()) node.fail(fmt::format("the id of '{}' must be an integer", token));
    const bool huge = id.is_number_unsigned() && id.get<uint64_t>() > static_cast<uint64_t>(Vocab::kMaxId);
    vocab.add(token, huge ? Vocab::kMaxId + 1 : id.get<int64_t>());
  }
}

std::vector<std::pair<std::string, std::string>> read_merges(const Node& node) {
  std::vector<std::pair<std::string, std::string>> merges;
  const size_t count = node.list();
  if (count > static_cast<size_t>(Vocab::kMaxId)) node.fail(fmt::format("{} merges are too many", count));
  merges.reserve(count);
  for (size_t rank = 0; rank < count; ++rank) {
    const Json& merge = node.value[rank];
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.emplace_back(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
      continue;
    }
    if (merge.is_string()) {
      const std::string& line = merge.get_ref<const std::string&>();
      const size_t space = line.find(' ');
      if (space != std::string::npos && line.find(' ', space + 1) == std::string::npos) {
        merges.emplace_back(line.substr(0, space), line.substr(space + 1));
        continue;
      }
    }
    node.at(rank).fail("must be \"left right\" or [\"left\", \"right\"]");
  }
  return merges;
}

void read_wordpiece(const Node& model, Pipeline& pipeline) {
  WordPiece::Options options;
  options.unk_token = model.text("unk_token", "[UNK]");
  options.continuing_subword_prefix = model.text("continuing_subword_prefix", "##");
  if (model.has("max_input_chars_per_word")) options.max_input_chars_per_word = model.at("max_input_chars_per_word").integer();
  if (pipeline.pre_tokenizer.has_byte_level()) model.refuse("WordPiece behind ByteLevel");
  read_vocab(model.at("vocab"), pipeline.vocab);
  pipeline.model.emplace<WordPiece>(pipeline.vocab, options);
}

void read_bpe(const Node& model, Pipeline& pipeline) {
  if (!pipeline.pre_tokenizer.has_byte_level()) model.refuse("BPE without the pre-tokenizer ByteLevel");
  if (model.has("dropout") && !(model.value["dropout"].is_number() && model.value["dropout"].get<double>() == 0))
    model.refuse("BPE dropout");
  if (!model.text("continuing_subword_prefix", "").empty()) model.refuse("BPE with continuing_subword_prefix");
  if (!model.text("end_of_word_suffix", "").empty()) model.refuse("BPE with end_of_word_suffix");
  if (model.flag("byte_fallback", false)) model.refuse("BPE with byte_fallback");
  Bpe::Options options;
  options.unk_token = model.text("unk_token", "");
  options.fuse_unk = model.flag("fuse_unk", false);
  options.ignore_merges = model.flag("ignore_merges", false);
  read_vocab(model.at("vocab"), pipeline.vocab);
  pipeline.model.emplace<Bpe>(pipeline.vocab, read_merges(model.at("merges")), options, model.path);
}

void read_model(const Node& model, Pipeline& pipeline) {
  if (!model.value.is_object()) model.fail("must be an object");
  // Files of the first versions do not name the type.
  const char* implied = model.has("merges") ? "BPE" : model.has("max_input_chars_per_word") ? "WordPiece" : "without a type";
  const std::string type = model.text("type", implied);
  if (type == "WordPiece") {
    read_wordpiece(model, pipeline);
  } else if (type == "BPE") {
    read_bpe(model, pipeline);
  } else {
    model.refuse(fmt::format("the model '{}'", type));
  }
}

std::vector<AddedToken> read_added_tokens(const Node& list, Vocab& vocab) {
  std::vector<AddedToken> tokens;
  std::unordered_set<int32_t> ids;
  for (size_t i = 0; i < list.list(); ++i) {
    const Node node = list.at(i);
    AddedToken token;
    token.content = node.at("content").text();
    token.id = id_of(node.at("id"));
    token.special = node.flag("special", false);
    token.single_word = node.flag("single_word", false);
    token.lstrip = node.flag("lstrip", false);
    token.rstrip = node.flag("rstrip", false);
    token.normalized = node.flag("normalized", !token.special);
    if (token.content.empty()) continue;  // as the Rust library: it can never be found
    if (!ids.insert(token.id).second) node.fail(fmt::format("the token '{}' is there twice", token.content));
    vocab.add(token.content, token.id);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

/// ["[SEP]", 102]
TemplatePiece read_pair_token(const Node& node, const Vocab& vocab) {
  if (node.list() != 2) node.fail("must be [token, id]");
  const std::string& token = node.at(size_t{0}).text();
  const int32_t id = id_of(node.at(size_t{1}));
  if (!vocab.has(id)) node.fail(fmt::format("the token '{}' has the id {}, which is not in the vocabulary", token, id));
  return {-1, 0, {id}, {token}};
}

std::vector<TemplatePiece> read_template(const Node& list, const Node& specials, const Vocab& vocab, int texts) {
  std::vector<TemplatePiece> pieces;
  for (size_t i = 0; i < list.list(); ++i) {
    const Node node = list.at(i);
    TemplatePiece piece;
    if (node.has("Sequence")) {
      const Node sequence = node.at("Sequence");
      const std::string& name = sequence.at("id").text();
      piece.text = name == "A" ? 0 : name == "B" ? 1 : 2;
      if (piece.text >= texts) sequence.fail(fmt::format("there is no text '{}' here", name));
      piece.type_id = type_id_of(sequence.at("type_id"));
    } else if (node.has("SpecialToken")) {
      const Node special = node.at("SpecialToken");
      piece.type_id = type_id_of(special.at("type_id"));
      const Node entry = specials.at(special.at("id").text().c_str());
      const Node ids = entry.at("ids");
      const Node tokens = entry.at("tokens");
      if (ids.list() != tokens.list()) entry.fail("has not as many ids as tokens");
      for (size_t k = 0; k < ids.list(); ++k) {
        piece.ids.push_back(id_of(ids.at(k)));
        piece.tokens.push_back(tokens.at(k).text());
        if (!vocab.has(piece.ids.back())) ids.at(k).fail(fmt::format("the id {} is not in the vocabulary", piece.ids.back()));
      }
    } else {
      node.fail("must be a Sequence or a SpecialToken");
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

/// cls A sep, and cls A sep B sep (BERT) or cls A sep sep B sep (RoBERTa, all type ids 0).
void set_cls_sep(const Node& node, const Vocab& vocab, bool roberta, PostProcessor& post) {
  const TemplatePiece cls = read_pair_token(node.at("cls"), vocab);
  const TemplatePiece sep = read_pair_token(node.at("sep"), vocab);
  const int32_t second = roberta ? 0 : 1;
  TemplatePiece last_sep = sep;
  last_sep.type_id = second;
  post.single = {cls, {0, 0, {}, {}}, sep};
  post.pair = post.single;
  if (roberta) post.pair.push_back(sep);
  post.pair.push_back({1, second, {}, {}});
  post.pair.push_back(last_sep);
}

/// `templated`: special tokens have been placed already.
void read_post_processor(const Node& node, const Vocab& vocab, PostProcessor& post, bool& templated, int depth = 0) {
  if (node.value.is_null()) return;
  if (depth > kMaxDepth) node.refuse("a Sequence this deep");
  const std::string& type = node.at("type").text();
  if (type == "Sequence") {
    const Node list = node.at("processors");
    for (size_t i = 0; i < list.list(); ++i) read_post_processor(list.at(i), vocab, post, templated, depth + 1);
    return;
  }
  const bool trims = type == "ByteLevel" || type == "RobertaProcessing";
  if (trims && node.flag("trim_offsets", true)) {
    if (post.trim_offsets) node.refuse("a second post-processor that trims offsets");
    post.trim_offsets = true;
    post.add_prefix_space = node.flag("add_prefix_space", true);
  }
  if (type == "ByteLevel") return;
  if (type != "TemplateProcessing" && type != "BertProcessing" && type != "RobertaProcessing") {
    node.refuse(fmt::format("the post-processor '{}'", type));
  }
  if (templated) node.refuse(fmt::format("the post-processor '{}' after another that places special tokens", type));
  templated = true;
  if (type == "TemplateProcessing") {
    const Node specials = node.at("special_tokens");
    post.single = read_template(node.at("single"), specials, vocab, 1);
    post.pair = read_template(node.at("pair"), specials, vocab, 2);
  } else {
    set_cls_sep(node, vocab, type == "RobertaProcessing", post);
  }
}

}  // namespace

void read_tokenizer_json(const std::filesystem::path& file, Pipeline& pipeline) {
  const std::string bytes = read_text_file(file);
  Json json;
  try {
    json = Json::parse(bytes);
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::corrupt, "[tokenizer] {}: not JSON: {}", file.string(), error.what());
  }
  const Node root{json, file.string() + ": tokenizer"};
  if (!json.is_object()) root.fail("must be an object");
  const auto optional = [&](const char* key) {
    static const Json kNull;
    return Node{json.contains(key) ? json[key] : kNull, fmt::format("{}: {}", file.string(), key)};
  };
  read_normalizer(optional("normalizer"), pipeline.normalizer);
  read_pre_tokenizer(optional("pre_tokenizer"), pipeline.pre_tokenizer);
  read_model(optional("model"), pipeline);
  if (root.has("added_tokens")) {
    pipeline.added = AddedTokens(read_added_tokens(optional("added_tokens"), pipeline.vocab), pipeline.normalizer);
  }
  bool templated = false;
  read_post_processor(optional("post_processor"), pipeline.vocab, pipeline.post_processor, templated);
  const Node truncation = optional("truncation");
  if (truncation.value.is_null()) return;
  if (truncation.text("direction", "Right") != "Right") truncation.refuse("truncation from the left");
  const int64_t length = truncation.at("max_length").integer();
  if (length > 0 && length <= std::numeric_limits<int32_t>::max()) pipeline.truncation_length = static_cast<int>(length);
}

}  // namespace muster::text
