// Code points: reading and writing UTF-8, and the properties that tokenizers ask for. The tables are utf8proc's (Unicode 15.0).
// Known difference from the Rust library, whose BERT parts use Unicode 8 tables and whose regular expressions use Unicode 16: a code
// point that got its punctuation, mark, format, letter or number category in another version is classed by Unicode 15.0 here.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::text {

constexpr char32_t kReplacement = 0xFFFD;

/// One step of a UTF-8 reader: the code point and the bytes it took. An ill-formed sequence gives kReplacement with the length of its
/// maximal subpart (1 to 3 bytes) and valid = false.
struct Decoded {
  char32_t code;
  uint8_t size;
  bool valid;
};

/// Reads the code point at `position` < text.size(), whatever the bytes are.
Decoded decode_utf8(std::string_view text, size_t position);

/// The same for text known to be valid UTF-8, faster.
inline Decoded decode_valid(std::string_view text, size_t position) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[position + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  if (lead < 0xE0) return {static_cast<char32_t>((lead & 0x1Fu) << 6 | (byte(1) & 0x3Fu)), 2, true};
  if (lead < 0xF0) return {static_cast<char32_t>((lead & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu)), 3, true};
  return {static_cast<char32_t>((lead & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu)), 4, true};
}

/// Start of the code point that ends at `end` > 0, in valid UTF-8.
inline size_t previous(std::string_view text, size_t end) {
  do {
    --end;
  } while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u);
  return end;
}

void append_utf8(std::string& out, char32_t code);
bool is_valid_utf8(std::string_view text);
bool is_ascii(std::string_view text);

/// text with each maximal ill-formed subpart replaced by U+FFFD. When `origin` is given it becomes the position in `text` of every byte
/// of the result, and one more for its end; the bytes of a replacement all have the start of what they replace.
std::string to_valid_utf8(std::string_view text, std::vector<uint32_t>* origin = nullptr);

bool is_whitespace(char32_t code);        // White_Space, the 25 code points of Rust's char::is_whitespace and of \s
bool is_letter(char32_t code);            // \p{L}
bool is_number(char32_t code);            // \p{N}
bool is_bert_punctuation(char32_t code);  // ASCII punctuation and symbols, or category P*
bool is_bert_control(char32_t code);      // Cc, Cf, Co, other than tab, line feed, carriage return
bool is_chinese(char32_t code);           // the CJK ideograph blocks of BERT
bool is_mark(char32_t code);              // category M*
bool is_nonspacing_mark(char32_t code);   // category Mn
bool is_word(char32_t code);              // \w of Rust's regex: Alphabetic, M*, Nd, Pc, Join_Control
int combining_class(char32_t code);

/// The letters that `code` becomes in lower case (two for U+0130, one for all others).
struct Lowered {
  std::array<char32_t, 2> codes;
  int count;
};
Lowered to_lower(char32_t code);

/// Appends the full canonical (or compatibility) decomposition of one code point.
void decompose(char32_t code, bool compatibility, std::vector<char32_t>& out);

}  // namespace muster::text
