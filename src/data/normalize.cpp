#include "data/normalize.h"

#include "core/error.h"
#include "text/unicode.h"

namespace muster::data {
namespace {

std::string_view replaced(std::string_view token) {
  if (token.size() > 1 && token.front() == '@') return "@user";
  if (token.starts_with("http")) return "http";
  return token;
}

/// Python's str.split(): Unicode white space and the four ASCII separators.
bool splits(char32_t code) { return text::is_whitespace(code) || (code >= 0x1C && code <= 0x1F); }

std::string clean_timelms(std::string_view text) {
  std::string result;
  const auto add = [&](std::string_view token) {
    if (token.empty()) return;
    if (!result.empty()) result += ' ';
    result += replaced(token);
  };
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const text::Decoded code = text::decode_utf8(text, at);
    if (splits(code.code)) {
      add(text.substr(begin, at - begin));
      begin = at + code.size;
    }
    at += code.size;
  }
  add(text.substr(begin));
  return result;
}

std::string clean_model_card(std::string_view text) {
  std::string result;
  for (size_t begin = 0;;) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    result += replaced(text.substr(begin, end - begin));
    if (end == text.size()) return result;
    result += ' ';
    begin = end + 1;
  }
}

}  // namespace

Normalization parse_normalization(std::string_view name) {
  for (const Normalization mode : {Normalization::none, Normalization::timelms, Normalization::model_card})
    if (name_of(mode) == name) return mode;
  throw Error(ErrorKind::usage, "unknown normalization '{}'; use none, timelms or model_card", name);
}

std::string_view name_of(Normalization mode) {
  switch (mode) {
    case Normalization::none: return "none";
    case Normalization::timelms: return "timelms";
    case Normalization::model_card: return "model_card";
  }
  return "?";
}

std::string normalize_tweet(std::string_view text, Normalization mode) {
  switch (mode) {
    case Normalization::timelms: return clean_timelms(text);
    case Normalization::model_card: return clean_model_card(text);
    case Normalization::none: break;
  }
  return std::string(text);
}

}  // namespace muster::data
