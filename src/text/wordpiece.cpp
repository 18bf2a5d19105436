// Greedy longest match with one hash pass per piece; see wordpiece.h.
#include "text/wordpiece.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "text/unicode.h"

namespace muster::text {

WordPiece::WordPiece(const Vocab& vocab, Options options) : options_(std::move(options)) {
  unk_id_ = vocab.find(options_.unk_token);
  if (unk_id_ < 0) {
    throw Error(ErrorKind::corrupt, "[tokenizer] the unknown token '{}' of WordPiece is not in its vocabulary of {} tokens",
                options_.unk_token, vocab.count());
  }
  const std::string& prefix = options_.continuing_subword_prefix;
  for (int32_t id = 0; id < vocab.end(); ++id) {
    if (!vocab.has(id)) continue;
    const std::string_view token = vocab.token(id);
    first_.insert(token, id);
    if (token.substr(0, prefix.size()) == prefix) following_.insert(token.substr(prefix.size()), id);
  }
}

void WordPiece::tokenize(std::string_view word, std::vector<Piece>& out) const {
  const size_t before = out.size();
  const auto unknown = [&] {
    out.resize(before);
    out.push_back({unk_id_, 0, static_cast<uint32_t>(word.size())});
  };
  const auto limit = static_cast<size_t>(std::max<int64_t>(options_.max_input_chars_per_word, 0));
  if (word.size() > limit) {  // bytes are at least as many as characters
    size_t chars = 0;
    for (const char byte : word) chars += (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u ? 1 : 0;
    if (chars > limit) return unknown();
  }

  // Hashes of the prefixes that are candidates; kept on the stack, so longer tokens than this take the slow way below.
  constexpr size_t kStack = 256;
  std::array<uint64_t, kStack> hashes;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled as far as it is read
  for (size_t start = 0; start < word.size();) {
    const StringTable& table = start == 0 ? first_ : following_;
    const size_t longest = std::min(word.size() - start, table.longest());
    const size_t hashed = std::min(longest, kStack);
    uint64_t hash = ByteHash::kStart;
    for (size_t k = 0; k < hashed; ++k) hashes[k] = hash = ByteHash::extend(hash, word[start + k]);
    int32_t found = -1;
    size_t size = longest;
    for (; size > 0; --size) {
      const bool boundary = start + size == word.size() || (static_cast<unsigned char>(word[start + size]) & 0xC0u) != 0x80u;
      if (!boundary) continue;
      const std::string_view candidate = word.substr(start, size);
      found = size <= kStack ? table.find(candidate, hashes[size - 1]) : table.find(candidate);
      if (found >= 0) break;
    }
    if (found < 0) return unknown();
    out.push_back({found, static_cast<uint32_t>(start), static_cast<uint32_t>(start + size)});
    start += size;
  }
}

}  // namespace muster::text
