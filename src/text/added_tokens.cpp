// Leftmost-longest search for added tokens; see added_tokens.h.
#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "text/unicode.h"

namespace muster::text {

namespace {

size_t space_before(std::string_view text, size_t end) {
  while (end > 0) {
    const size_t begin = previous(text, end);
    if (!is_whitespace(decode_valid(text, begin).code)) break;
    end = begin;
  }
  return end;
}

size_t space_after(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const Decoded step = decode_valid(text, begin);
    if (!is_whitespace(step.code)) break;
    begin += step.size;
  }
  return begin;
}

bool touches_word(std::string_view text, size_t begin, size_t end) {
  const bool before = begin > 0 && is_word(decode_valid(text, previous(text, begin)).code);
  return before || (end < text.size() && is_word(decode_valid(text, end).code));
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer) : tokens_(std::move(tokens)) {
  // Special tokens come first: of two equal patterns the first is found.
  std::vector<const AddedToken*> order;
  for (const bool special : {true, false}) {
    for (const AddedToken& token : tokens_) {
      if (token.special == special) order.push_back(&token);
    }
  }
  for (const AddedToken* token : order) {
    std::string pattern = token->content;
    if (token->normalized) {
      Normalized piece;
      piece.assign(pattern, 0, pattern.size(), false);
      normalizer.apply(piece);
      pattern = piece.text;
    }
    if (pattern.empty()) {
      throw Error(ErrorKind::unsupported,
                  "[tokenizer] the added token '{}' (id {}) is empty once normalized; set \"normalized\": false for it", token->content,
                  token->id);
    }
    Matcher& matcher = token->normalized ? normalized_ : raw_;
    matcher.empty = false;
    const auto first = static_cast<unsigned char>(pattern.front());
    matcher.by_first_byte[first].push_back({std::move(pattern), token});
  }
  for (Matcher* matcher : {&raw_, &normalized_}) {
    for (std::vector<Pattern>& patterns : matcher->by_first_byte) {
      std::stable_sort(patterns.begin(), patterns.end(), [](const Pattern& a, const Pattern& b) { return a.text.size() > b.text.size(); });
    }
  }
}

bool AddedTokens::is_special(int32_t id) const {
  return std::any_of(tokens_.begin(), tokens_.end(), [&](const AddedToken& token) { return token.id == id && token.special; });
}

void AddedTokens::split(const Matcher& matcher, std::string_view text, std::vector<Part>& parts) {
  parts.clear();
  size_t done = 0;
  for (size_t i = 0; !matcher.empty && i < text.size();) {
    const std::vector<Pattern>& patterns = matcher.by_first_byte[static_cast<unsigned char>(text[i])];
    const auto match = std::find_if(patterns.begin(), patterns.end(),
                                    [&](const Pattern& pattern) { return text.compare(i, pattern.text.size(), pattern.text) == 0; });
    if (match == patterns.end()) {
      ++i;
      continue;
    }
    const AddedToken& token = *match->token;
    size_t begin = i;
    size_t end = i + match->text.size();
    i = end;  // the search goes on behind the match, also when it is discarded
    if (token.single_word && touches_word(text, begin, end)) continue;
    if (token.lstrip) begin = std::max(space_before(text, begin), done);
    if (token.rstrip) end = space_after(text, end);
    if (done < begin) parts.push_back({done, begin, nullptr});
    parts.push_back({begin, end, &token});
    done = end;
  }
  if (done < text.size()) parts.push_back({done, text.size(), nullptr});
}

}  // namespace muster::text
