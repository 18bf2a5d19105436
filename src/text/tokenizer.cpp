// Runs the pipeline: added tokens, normalizer, words, model, length, special tokens, offsets; see tokenizer.h.
#include "text/tokenizer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "core/error.h"
#include "text/pipeline.h"

namespace muster::text {

namespace {

constexpr size_t kMaxText = size_t{1} << 30;

/// Tokens of one text, before special tokens. Only ids when nobody asks for more.
struct Tokens {
  bool detailed = false;
  std::vector<int32_t>* ids = nullptr;
  std::vector<Span> spans;
  std::vector<std::string> strings;
};

/// Memory that one call needs again and again.
struct Scratch {
  std::vector<Part> parts, inner_parts;
  std::vector<Word> words;
  std::vector<Piece> pieces;
  Normalized piece, inner;
};

void tokenize_word(const Pipeline& pipeline, std::string_view word, std::vector<Piece>& pieces) {
  pieces.clear();
  if (const auto* wordpiece = std::get_if<WordPiece>(&pipeline.model)) {
    wordpiece->tokenize(word, pieces);
  } else if (const auto* bpe = std::get_if<Bpe>(&pipeline.model)) {
    bpe->tokenize(word, pieces);
  }
}

void tokenize_piece(const Pipeline& pipeline, Normalized& piece, Scratch& scratch, size_t limit, Tokens& out) {
  pipeline.pre_tokenizer.split(piece, scratch.words);
  for (const Word word : scratch.words) {
    if (out.ids->size() >= limit) return;
    tokenize_word(pipeline, std::string_view(piece.text).substr(word.begin, word.end - word.begin), scratch.pieces);
    for (const Piece& token : scratch.pieces) {
      out.ids->push_back(token.id);
      if (!out.detailed) continue;
      out.spans.push_back(piece.span(word.begin + token.begin, word.begin + token.end));
      out.strings.emplace_back(pipeline.vocab.token(token.id));
    }
  }
}

void push_added(const AddedToken& token, std::string_view as_written, Span span, Tokens& out) {
  out.ids->push_back(token.id);
  if (!out.detailed) return;
  out.spans.push_back(span);
  out.strings.emplace_back(as_written);
}

/// Appends tokens until `out.ids` holds `limit` or a few more. `text` is valid UTF-8.
void tokenize(const Pipeline& pipeline, std::string_view text, size_t limit, Tokens& out) {
  Scratch scratch;
  pipeline.added.split_raw(text, scratch.parts);
  for (const Part& part : scratch.parts) {
    if (out.ids->size() >= limit) return;
    if (part.token != nullptr) {
      push_added(*part.token, text.substr(part.begin, part.end - part.begin),
                 {static_cast<uint32_t>(part.begin), static_cast<uint32_t>(part.end)}, out);
      continue;
    }
    Normalized& piece = scratch.piece;
    piece.assign(text, part.begin, part.end, out.detailed);
    pipeline.normalizer.apply(piece);
    pipeline.added.split_normalized(piece.text, scratch.inner_parts);
    if (scratch.inner_parts.size() == 1 && scratch.inner_parts.front().token == nullptr) {
      tokenize_piece(pipeline, piece, scratch, limit, out);
      continue;
    }
    for (const Part& inner : scratch.inner_parts) {
      const std::string_view slice = std::string_view(piece.text).substr(inner.begin, inner.end - inner.begin);
      if (inner.token != nullptr) {
        push_added(*inner.token, slice, out.detailed ? piece.span(inner.begin, inner.end) : Span{0, 0}, out);
        continue;
      }
      scratch.inner.text.assign(slice);
      scratch.inner.aligned = out.detailed;
      scratch.inner.origin.clear();
      if (out.detailed) {
        scratch.inner.origin.assign(piece.origin.begin() + static_cast<std::ptrdiff_t>(inner.begin),
                                    piece.origin.begin() + static_cast<std::ptrdiff_t>(inner.end));
      }
      tokenize_piece(pipeline, scratch.inner, scratch, limit, out);
    }
  }
}

void check_size(std::string_view text) {
  if (text.size() >= kMaxText) {
    throw Error(ErrorKind::too_large, "[tokenizer] a text of {} bytes; at most {} are taken, cut it first", text.size(), kMaxText - 1);
  }
}

/// Room for tokens of texts: max_length without the special tokens, or no limit.
size_t room(const Pipeline& pipeline, int max_length, bool add_special_tokens, bool pair) {
  if (max_length < 0) throw Error(ErrorKind::invalid_argument, "[tokenizer] max_length {} is negative; 0 means no limit", max_length);
  if (max_length == 0) return std::numeric_limits<size_t>::max();
  const int added = add_special_tokens ? pipeline.post_processor.added(pair) : 0;
  if (max_length < added) {
    throw Error(ErrorKind::invalid_argument, "[tokenizer] max_length {} leaves no room for the {} special tokens; give at least that",
                max_length, added);
  }
  return static_cast<size_t>(max_length - added);
}

/// How many tokens of each text stay when a pair must fit into `limit`: the longer one is cut (LongestFirst of the Rust library).
std::pair<size_t, size_t> cut_pair(size_t first, size_t second, size_t limit) {
  if (first <= limit && second <= limit - first) return {first, second};
  size_t shorter = std::min(first, second);
  size_t longer = shorter > limit ? shorter : std::max(shorter, limit - shorter);
  if (shorter + longer > limit) {
    shorter = limit / 2;
    longer = shorter + limit % 2;
  }
  return first > second ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

bool trims(char32_t code) { return code == byte_symbol(' ') || is_whitespace(code); }

/// Takes the white space around each token out of its span, in code points of the text (process_offsets of the Rust library).
void trim_spans(std::string_view text, bool add_prefix_space, Tokens& tokens) {
  for (size_t i = 0; i < tokens.spans.size(); ++i) {
    const std::string_view token = tokens.strings[i];
    Span& span = tokens.spans[i];
    size_t leading = 0;
    for (size_t k = 0; k < token.size();) {
      const Decoded step = decode_valid(token, k);
      if (!trims(step.code)) break;
      ++leading;
      k += step.size;
    }
    size_t trailing = 0;
    for (size_t k = token.size(); k > 0;) {
      k = previous(token, k);
      if (!trims(decode_valid(token, k).code)) break;
      ++trailing;
    }
    if (leading > 0 && (i == 0 || span.begin == 0) && add_prefix_space && leading == 1) leading = 0;
    for (; leading > 0 && span.begin < span.end; --leading) span.begin += decode_valid(text, span.begin).size;
    size_t end = span.end;
    size_t left = trailing;
    for (; left > 0 && end > 0; --left) end = previous(text, end);
    if (left == 0) span.end = std::max(static_cast<uint32_t>(end), span.begin);
  }
}

/// One text on its way into an Encoding.
struct Side {
  std::string repaired;            // only when the text is not valid UTF-8
  std::vector<uint32_t> position;  // in the text as given, of each byte of `repaired`
  std::string_view text;
  std::vector<int32_t> ids;
  Tokens tokens;

  void run(const Pipeline& pipeline, std::string_view given, size_t limit) {
    check_size(given);
    text = given;
    if (!is_valid_utf8(given)) {
      repaired = to_valid_utf8(given, &position);
      text = repaired;
    }
    tokens.detailed = true;
    tokens.ids = &ids;
    tokenize(pipeline, text, limit, tokens);
  }

  void cut(size_t size) {
    if (ids.size() <= size) return;
    ids.resize(size);
    tokens.spans.resize(size);
    tokens.strings.resize(size);
  }

  [[nodiscard]] Offsets offsets(size_t i) const {
    const Span span = tokens.spans[i];
    return position.empty() ? Offsets(span.begin, span.end) : Offsets(position[span.begin], position[span.end]);
  }
};

Encoding assemble(const std::vector<TemplatePiece>& pieces, bool add_special_tokens, std::span<Side* const> sides) {
  Encoding out;
  for (const TemplatePiece& piece : pieces) {
    if (piece.text >= 0) {
      const Side& side = *sides[static_cast<size_t>(piece.text)];
      for (size_t i = 0; i < side.ids.size(); ++i) {
        out.ids.push_back(side.ids[i]);
        out.tokens.push_back(side.tokens.strings[i]);
        out.offsets.push_back(side.offsets(i));
        out.special_tokens_mask.push_back(0);
        out.text_index.push_back(static_cast<uint8_t>(piece.text));
      }
    } else if (add_special_tokens) {
      for (size_t i = 0; i < piece.ids.size(); ++i) {
        out.ids.push_back(piece.ids[i]);
        out.tokens.push_back(piece.tokens[i]);
        out.offsets.emplace_back(0, 0);
        out.special_tokens_mask.push_back(1);
        out.text_index.push_back(0);
      }
    }
    out.type_ids.resize(out.ids.size(), piece.type_id);
  }
  return out;
}

}  // namespace

std::vector<Offsets> char_offsets(std::string_view text, std::span<const Offsets> offsets) {
  std::vector<uint32_t> index(text.size() + 1, 0);
  uint32_t count = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t size = decode_utf8(text, i).size;
    for (size_t k = 0; k < size; ++k) index[i + k] = count;
    ++count;
    i += size;
  }
  index[text.size()] = count;
  std::vector<Offsets> out;
  out.reserve(offsets.size());
  for (const Offsets& range : offsets) {
    if (range.second > text.size() || range.first > range.second) {
      throw Error(ErrorKind::invalid_argument, "[tokenizer] offsets {}..{} do not lie in a text of {} bytes", range.first, range.second,
                  text.size());
    }
    out.emplace_back(index[range.first], index[range.second]);
  }
  return out;
}

Tokenizer Tokenizer::load(const std::filesystem::path& folder) {
  auto pipeline = std::make_shared<Pipeline>();
  std::error_code ignored;
  const auto have = [&](const char* name) { return std::filesystem::is_regular_file(folder / name, ignored); };
  if (std::filesystem::is_directory(folder, ignored) && ::access(folder.c_str(), X_OK) != 0)
    throw Error(ErrorKind::io, "[tokenizer] {}: cannot enter the folder: {}", folder.string(), errno_text(errno));
  if (have("tokenizer.json")) {
    read_tokenizer_json(folder / "tokenizer.json", *pipeline);
  } else if (have("vocab.txt")) {
    read_vocab_txt(folder, *pipeline);
  } else if (have("vocab.json") && have("merges.txt")) {
    read_vocab_and_merges(folder, *pipeline);
  } else {
    throw Error(ErrorKind::not_found,
                "[tokenizer] {}: no tokenizer.json, no vocab.txt, no vocab.json with merges.txt; copy them beside the model",
                folder.string());
  }
  read_special_tokens(folder, *pipeline);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt",
                           "vocab.json", "merges.txt"}) {
    if (have(name)) pipeline->files.push_back(folder / name);
  }
  return Tokenizer(std::move(pipeline));
}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  const size_t limit = room(*pipeline_, options.max_length, options.add_special_tokens, false);
  Side side;
  side.run(*pipeline_, text, limit);
  side.cut(limit);
  const PostProcessor& post = pipeline_->post_processor;
  if (post.trim_offsets) trim_spans(side.text, post.add_prefix_space, side.tokens);
  Side* sides[] = {&side};
  return assemble(post.single, options.add_special_tokens, sides);
}

Encoding Tokenizer::encode_pair(std::string_view text, std::string_view pair, const EncodeOptions& options) const {
  const size_t limit = room(*pipeline_, options.max_length, options.add_special_tokens, true);
  Side first;
  Side second;
  // Both are tokenized to the end: which one is cut, and where, depends on how long they are.
  first.run(*pipeline_, text, std::numeric_limits<size_t>::max());
  second.run(*pipeline_, pair, std::numeric_limits<size_t>::max());
  const auto [keep_first, keep_second] = cut_pair(first.ids.size(), second.ids.size(), limit);
  first.cut(keep_first);
  second.cut(keep_second);
  const PostProcessor& post = pipeline_->post_processor;
  if (post.trim_offsets) {
    trim_spans(first.text, post.add_prefix_space, first.tokens);
    trim_spans(second.text, post.add_prefix_space, second.tokens);
  }
  Side* sides[] = {&first, &second};
  return assemble(post.pair, options.add_special_tokens, sides);
}

size_t Tokenizer::encode_ids(std::string_view text, int max_length, std::vector<int32_t>& ids) const {
  const size_t limit = room(*pipeline_, max_length, true, false);
  check_size(text);
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = to_valid_utf8(text);
    text = repaired;
  }
  const size_t before = ids.size();
  for (const TemplatePiece& piece : pipeline_->post_processor.single) {
    if (piece.text < 0) {
      ids.insert(ids.end(), piece.ids.begin(), piece.ids.end());
      continue;
    }
    const size_t end = limit > std::numeric_limits<size_t>::max() - ids.size() ? std::numeric_limits<size_t>::max() : ids.size() + limit;
    Tokens tokens;
    tokens.ids = &ids;
    tokenize(*pipeline_, text, end, tokens);
    if (ids.size() > end) ids.resize(end);
  }
  return ids.size() - before;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::string out;
  const auto* wordpiece = std::get_if<WordPiece>(&pipeline_->model);
  for (const int32_t id : ids) {
    if (!pipeline_->vocab.has(id)) {
      throw Error(ErrorKind::invalid_argument, "[tokenizer] no token has the id {}; ids are below {}", id, vocab_size());
    }
    if (skip_special_tokens && pipeline_->added.is_special(id)) continue;
    std::string_view token = pipeline_->vocab.token(id);
    if (wordpiece != nullptr) {
      const std::string& prefix = wordpiece->options().continuing_subword_prefix;
      const bool continues = !out.empty() && !prefix.empty() && token.substr(0, prefix.size()) == prefix;
      if (continues) token.remove_prefix(prefix.size());
      if (!out.empty() && !continues) out.push_back(' ');
      out.append(token);
      continue;
    }
    std::string bytes;
    for (size_t i = 0; i < token.size();) {
      const Decoded step = decode_utf8(token, i);
      const int byte = symbol_byte(step.code);
      if (byte < 0) {  // not in the byte alphabet: an added token, taken as it is
        bytes.assign(token);
        break;
      }
      bytes.push_back(static_cast<char>(byte));
      i += step.size;
    }
    out.append(bytes);
  }
  return to_valid_utf8(out);
}

int64_t Tokenizer::vocab_size() const { return pipeline_->vocab.end(); }

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  const int32_t id = pipeline_->vocab.find(token);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::string_view Tokenizer::id_to_token(int32_t id) const { return pipeline_->vocab.token(id); }
std::optional<int32_t> Tokenizer::pad_id() const { return pipeline_->special.pad; }
std::optional<int32_t> Tokenizer::unk_id() const { return pipeline_->special.unk; }
std::optional<int32_t> Tokenizer::cls_id() const { return pipeline_->special.cls; }
std::optional<int32_t> Tokenizer::sep_id() const { return pipeline_->special.sep; }
std::optional<int32_t> Tokenizer::mask_id() const { return pipeline_->special.mask; }
int Tokenizer::special_tokens_added(bool pair) const { return pipeline_->post_processor.added(pair); }
std::optional<int> Tokenizer::model_max_length() const { return pipeline_->model_max_length; }
std::optional<int> Tokenizer::truncation_length() const { return pipeline_->truncation_length; }
std::vector<std::filesystem::path> Tokenizer::files() const { return pipeline_->files; }

}  // namespace muster::text
