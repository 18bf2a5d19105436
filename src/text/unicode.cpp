// UTF-8 by hand (Unicode 15, table 3-7), properties from utf8proc.
#include "text/unicode.h"

#include <utf8proc.h>

#include <cstring>

namespace muster::text {

namespace {

utf8proc_category_t category(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

bool in(char32_t code, char32_t first, char32_t last) { return code >= first && code <= last; }

}  // namespace

Decoded decode_utf8(std::string_view text, size_t position) {
  const auto at = [&](size_t i) { return position + i < text.size() ? static_cast<unsigned char>(text[position + i]) : 0u; };
  const unsigned lead = at(0);
  if (lead < 0x80) return {lead, 1, true};
  const Decoded bad{kReplacement, 1, false};
  if (lead < 0xC2 || lead > 0xF4) return bad;
  // The second byte has a narrower range after some lead bytes: no overlong forms, no surrogates, nothing above U+10FFFF.
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  const unsigned second = at(1);
  if (second < low || second > high) return bad;
  if (lead < 0xE0) return {(lead & 0x1Fu) << 6 | (second & 0x3Fu), 2, true};
  const unsigned third = at(2);
  if (third < 0x80 || third > 0xBF) return {kReplacement, 2, false};
  if (lead < 0xF0) return {(lead & 0x0Fu) << 12 | (second & 0x3Fu) << 6 | (third & 0x3Fu), 3, true};
  const unsigned fourth = at(3);
  if (fourth < 0x80 || fourth > 0xBF) return {kReplacement, 3, false};
  return {(lead & 0x07u) << 18 | (second & 0x3Fu) << 12 | (third & 0x3Fu) << 6 | (fourth & 0x3Fu), 4, true};
}

void append_utf8(std::string& out, char32_t code) {
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xC0u | code >> 6));
    out.push_back(static_cast<char>(0x80u | (code & 0x3Fu)));
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xE0u | code >> 12));
    out.push_back(static_cast<char>(0x80u | (code >> 6 & 0x3Fu)));
    out.push_back(static_cast<char>(0x80u | (code & 0x3Fu)));
  } else {
    out.push_back(static_cast<char>(0xF0u | code >> 18));
    out.push_back(static_cast<char>(0x80u | (code >> 12 & 0x3Fu)));
    out.push_back(static_cast<char>(0x80u | (code >> 6 & 0x3Fu)));
    out.push_back(static_cast<char>(0x80u | (code & 0x3Fu)));
  }
}

bool is_ascii(std::string_view text) {
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    if ((word & 0x8080808080808080u) != 0) return false;
  }
  for (; i < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) >= 0x80) return false;
  }
  return true;
}

bool is_valid_utf8(std::string_view text) {
  if (is_ascii(text)) return true;
  for (size_t i = 0; i < text.size();) {
    const Decoded step = decode_utf8(text, i);
    if (!step.valid) return false;
    i += step.size;
  }
  return true;
}

std::string to_valid_utf8(std::string_view text, std::vector<uint32_t>* origin) {
  std::string out;
  out.reserve(text.size() + 16);
  if (origin != nullptr) origin->clear();
  for (size_t i = 0; i < text.size();) {
    const Decoded step = decode_utf8(text, i);
    const size_t before = out.size();
    append_utf8(out, step.code);
    if (origin != nullptr) {
      for (size_t k = before; k < out.size(); ++k) origin->push_back(static_cast<uint32_t>(step.valid ? i + (k - before) : i));
    }
    i += step.size;
  }
  if (origin != nullptr) origin->push_back(static_cast<uint32_t>(text.size()));
  return out;
}

bool is_whitespace(char32_t code) {
  if (code < 0x80) return code == ' ' || in(code, 9, 13);
  return code == 0x85 || code == 0xA0 || code == 0x1680 || in(code, 0x2000, 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x205F || code == 0x3000;
}

bool is_letter(char32_t code) {
  if (code < 0x80) return in(code | 0x20u, 'a', 'z');
  switch (category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return true;
    default: return false;
  }
}

bool is_number(char32_t code) {
  if (code < 0x80) return in(code, '0', '9');
  switch (category(code)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return true;
    default: return false;
  }
}

bool is_bert_punctuation(char32_t code) {
  if (code < 0x80) return in(code, 33, 47) || in(code, 58, 64) || in(code, 91, 96) || in(code, 123, 126);
  switch (category(code)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return true;
    default: return false;
  }
}

bool is_bert_control(char32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  if (code < 0x80) return code < 0x20 || code == 0x7F;
  switch (category(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO: return true;
    default: return false;
  }
}

bool is_chinese(char32_t code) {
  return in(code, 0x4E00, 0x9FFF) || in(code, 0x3400, 0x4DBF) || in(code, 0x20000, 0x2A6DF) || in(code, 0x2A700, 0x2B81F) ||
         in(code, 0x2B920, 0x2CEAF) || in(code, 0xF900, 0xFAFF) || in(code, 0x2F800, 0x2FA1F);
}

bool is_mark(char32_t code) {
  if (code < 0x300) return false;
  switch (category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return true;
    default: return false;
  }
}

bool is_nonspacing_mark(char32_t code) { return code >= 0x300 && category(code) == UTF8PROC_CATEGORY_MN; }

bool is_word(char32_t code) {
  if (code < 0x80) return in(code | 0x20u, 'a', 'z') || in(code, '0', '9') || code == '_';
  switch (category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    // Other_Alphabetic outside L, N and M: the circled and squared letters. Then Join_Control.
    default:
      return in(code, 0x24B6, 0x24E9) || in(code, 0x1F130, 0x1F149) || in(code, 0x1F150, 0x1F169) || in(code, 0x1F170, 0x1F189) ||
             code == 0x200C || code == 0x200D;
  }
}

int combining_class(char32_t code) {
  if (code < 0x300) return 0;
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class;
}

Lowered to_lower(char32_t code) {
  if (code < 0x80) return {{in(code, 'A', 'Z') ? code | 0x20u : code, 0}, 1};
  if (code == 0x130) return {{'i', 0x307}, 2};  // the only one of SpecialCasing.txt that needs no context
  return {{static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))), 0}, 1};
}

void decompose(char32_t code, bool compatibility, std::vector<char32_t>& out) {
  if (code < 0x80) {
    out.push_back(code);
    return;
  }
  std::array<utf8proc_int32_t, 32> parts{};  // the longest, U+FDFA, has 18
  int boundary = 0;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0));
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts.data(), parts.size(), options, &boundary);
  if (count <= 0 || count > static_cast<utf8proc_ssize_t>(parts.size())) {
    out.push_back(code);
    return;
  }
  for (utf8proc_ssize_t i = 0; i < count; ++i) out.push_back(static_cast<char32_t>(parts[static_cast<size_t>(i)]));
}

}  // namespace muster::text
