// The tokenizer of a Hugging Face model folder: text in, token ids out, identical to the Rust `tokenizers` library.
// Here: the public class. The parts of the pipeline have a file each: added_tokens, normalizer, pre_tokenizer, wordpiece, bpe,
// post_processor; tokenizer_json.cpp and tokenizer_files.cpp read them. Packing into batches: token_batch.h.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::text {

/// [begin, end) in bytes of the text as the caller gave it (also when that text is not valid UTF-8). Tokens that stand for no text,
/// such as [CLS], have {0, 0}.
using Offsets = std::pair<uint32_t, uint32_t>;

/// One text, or a pair of texts, as tokens. All vectors have the same length.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // 0 for the first text, as the post-processor says for the second (BERT: 1, RoBERTa: 0)
  std::vector<std::string> tokens;
  std::vector<Offsets> offsets;
  std::vector<uint8_t> special_tokens_mask;  // 1 where the post-processor added the token
  std::vector<uint8_t> text_index;           // 0: offsets are of the first text, 1: of the second
};

struct EncodeOptions {
  bool add_special_tokens = true;
  /// Longest result in tokens, special tokens included, cut at the right end (of the longer text for a pair); 0 = never cut.
  int max_length = 0;
};

/// Offsets counted in code points instead of bytes, as the Python binding of the Rust library gives them. `text` is the one that was
/// encoded; each invalid sequence of it (see Tokenizer) counts as one code point. `offsets` must lie on code point boundaries of it.
std::vector<Offsets> char_offsets(std::string_view text, std::span<const Offsets> offsets);

struct Pipeline;

/// Immutable after load(): one object serves any number of threads. Copies share their tables.
///
/// Text is UTF-8. Where it is not valid, each maximal subpart of an ill-formed sequence (Unicode 15, section 3.9) is read as one
/// U+FFFD, as Rust's String::from_utf8_lossy and Python's bytes.decode(errors="replace") do. U+0000 is a character like others.
/// A text of 2^30 bytes or more is Error(too_large).
class Tokenizer {
 public:
  /// Reads `folder`: tokenizer.json when it is there; else vocab.txt (WordPiece; flags of tokenizer_config.json), else vocab.json and
  /// merges.txt (byte-level BPE). tokenizer_config.json and special_tokens_map.json name the special tokens when they are there.
  /// Throws Error: not_found (no such files), corrupt (malformed, with file and place), unsupported (a component that muster does not
  /// have, by name).
  static Tokenizer load(const std::filesystem::path& folder);

  [[nodiscard]] Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  [[nodiscard]] Encoding encode_pair(std::string_view text, std::string_view pair, const EncodeOptions& options = {}) const;

  /// The fast path: appends the ids of `text`, special tokens included, to `ids` (what is in it stays) and returns how many. Same ids as
  /// encode(). max_length as in EncodeOptions. Throws Error(invalid_argument) when max_length leaves no room for the special tokens.
  size_t encode_ids(std::string_view text, int max_length, std::vector<int32_t>& ids) const;

  /// Text of ids: word pieces joined, bytes put together; invalid UTF-8 becomes U+FFFD. Ids out of range are Error(invalid_argument).
  [[nodiscard]] std::string decode(std::span<const int32_t> ids, bool skip_special_tokens = true) const;

  /// Rows an embedding table must have at least: highest id + 1.
  [[nodiscard]] int64_t vocab_size() const;
  [[nodiscard]] std::optional<int32_t> token_to_id(std::string_view token) const;
  /// Empty for an id that no token has.
  [[nodiscard]] std::string_view id_to_token(int32_t id) const;

  [[nodiscard]] std::optional<int32_t> pad_id() const;
  [[nodiscard]] std::optional<int32_t> unk_id() const;
  [[nodiscard]] std::optional<int32_t> cls_id() const;
  [[nodiscard]] std::optional<int32_t> sep_id() const;
  [[nodiscard]] std::optional<int32_t> mask_id() const;

  /// Tokens that the post-processor adds to one text (2 for BERT and RoBERTa), or to a pair.
  [[nodiscard]] int special_tokens_added(bool pair = false) const;

  /// model_max_length of tokenizer_config.json; empty when absent or one of the huge values that mean "none". The caller clamps it to the
  /// position table of the model.
  [[nodiscard]] std::optional<int> model_max_length() const;
  /// max_length of the truncation section of tokenizer.json: a default for callers that have no better; never applied by itself.
  [[nodiscard]] std::optional<int> truncation_length() const;

  /// The files of the folder that make up this tokenizer, all that are there: a trainer copies them unchanged beside its weights.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;

 private:
  explicit Tokenizer(std::shared_ptr<const Pipeline> pipeline) : pipeline_(std::move(pipeline)) {}
  std::shared_ptr<const Pipeline> pipeline_;
};

}  // namespace muster::text
