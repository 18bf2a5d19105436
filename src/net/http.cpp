#include "net/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace muster::net {
namespace {
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

std::string decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])));
      i += 2;
    } else {
      out.push_back(plus_is_space && text[i] == '+' ? ' ' : text[i]);
    }
  }
  return out;
}
}  // namespace

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::optional<std::string_view> Headers::get(std::string_view name) const {
  for (const auto& [key, value] : fields_)
    if (same_word(key, name)) return value;
  return std::nullopt;
}

std::string json_quote(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

HttpResponse error_response(int status, std::string_view message) {
  return {.status = status, .body = fmt::format("{{\"error\": {}, \"code\": {}}}", json_quote(message), status)};
}

std::string_view reason_of(int status) {
  constexpr std::array<std::pair<int, std::string_view>, 22> kReasons{{{100, "Continue"},
                                                                       {200, "OK"},
                                                                       {201, "Created"},
                                                                       {202, "Accepted"},
                                                                       {204, "No Content"},
                                                                       {400, "Bad Request"},
                                                                       {404, "Not Found"},
                                                                       {405, "Method Not Allowed"},
                                                                       {406, "Not Acceptable"},
                                                                       {408, "Request Timeout"},
                                                                       {409, "Conflict"},
                                                                       {413, "Content Too Large"},
                                                                       {414, "URI Too Long"},
                                                                       {415, "Unsupported Media Type"},
                                                                       {417, "Expectation Failed"},
                                                                       {422, "Unprocessable Content"},
                                                                       {429, "Too Many Requests"},
                                                                       {431, "Request Header Fields Too Large"},
                                                                       {500, "Internal Server Error"},
                                                                       {503, "Service Unavailable"},
                                                                       {504, "Gateway Timeout"},
                                                                       {505, "HTTP Version Not Supported"}}};
  for (const auto& [code, reason] : kReasons)
    if (code == status) return reason;
  return "";
}

void split_target(std::string_view target, std::string& path, std::map<std::string, std::string>& query) {
  query.clear();
  if (const size_t scheme = target.find("://"); scheme != std::string_view::npos && scheme < target.find_first_of("/?")) {
    const size_t start = target.find_first_of("/?", scheme + 3);
    target = start == std::string_view::npos ? "" : target.substr(start);
  }
  const size_t mark = target.find('?');
  path = decode(target.substr(0, mark), false);
  if (path.empty()) path.push_back('/');
  if (mark == std::string_view::npos) return;
  for (std::string_view rest = target.substr(mark + 1); !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    query[decode(pair.substr(0, equals), true)] = equals == std::string_view::npos ? "" : decode(pair.substr(equals + 1), true);
  }
}

}  // namespace muster::net
