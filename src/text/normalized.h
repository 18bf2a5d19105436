// A piece of text on its way through normalizers, with the place each of its bytes comes from.
// The rules by which places move are those of NormalizedString of the Rust library (tokenizer/normalizer.rs).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/unicode.h"

namespace muster::text {

/// [begin, end) in bytes of the text that is tokenized (after to_valid_utf8).
struct Span {
  uint32_t begin;
  uint32_t end;
};

/// A code point of a new text: `added` = it was put in beside the one before, else it stands for the next code point of the old text.
struct Change {
  char32_t code;
  bool added;
};

struct Normalized {
  std::string text;          // valid UTF-8
  std::vector<Span> origin;  // one per byte of text: the code point it comes from; empty when nobody asks for offsets
  bool aligned = false;

  /// Becomes `source` [begin, end) of a text; `source` is the whole text.
  void assign(std::string_view source, size_t begin, size_t end, bool with_origin);

  void push(char32_t code, Span from) {
    const size_t before = text.size();
    append_utf8(text, code);
    if (aligned) origin.insert(origin.end(), text.size() - before, from);
  }

  /// Replaces the text by the code points of `changes`.
  void apply(const std::vector<Change>& changes);

  /// A space at the front, unless the text is empty; it comes from the first code point.
  void prepend_space();

  /// Where the bytes [begin, end), begin < end, come from.
  [[nodiscard]] Span span(size_t begin, size_t end) const { return {origin[begin].begin, origin[end - 1].end}; }
};

}  // namespace muster::text
