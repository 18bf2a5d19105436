#include "serve/invocation.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace muster::serve {
namespace {
using nlohmann::json;

[[noreturn]] void bad(const std::string& path, const std::string& what) { throw Error(ErrorKind::invalid_argument, "{}: {}", path, what); }

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

/// Takes the next piece up to `separator` off the front of `rest`.
std::string_view next_piece(std::string_view& rest, char separator) {
  const std::string_view piece = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(piece.size() + 1, rest.size()));
  return piece;
}

/// Bounds what the JSON parser will build, before it builds it: brackets nested, values in all.
void check_structure(std::string_view body, const InvocationLimits& limits) {
  const int64_t max_values = 64 + 8 * limits.max_client_batch_size;
  int depth = 0;
  int64_t values = 0;
  bool in_string = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
      continue;
    }
    if (c == '"')
      in_string = true;
    else if (c == '[' || c == '{')
      ++depth, ++values;
    else if (c == ']' || c == '}')
      --depth;
    else if (c == ',')
      ++values;
    if (depth > limits.max_json_depth) bad("the body", fmt::format("JSON nested deeper than {} at byte {}", limits.max_json_depth, i));
    if (values > max_values)
      throw Error(ErrorKind::too_large, "the body holds more than {} JSON values: one request takes {} texts", max_values,
                  limits.max_client_batch_size);
  }
}

json parse_json(std::string_view body, const InvocationLimits& limits) {
  check_structure(body, limits);
  try {
    return json::parse(body);
  } catch (const json::parse_error& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 3: ... - ...; last read: '...'": the last part may be a whole text.
    std::string_view why = e.what();
    if (const size_t start = why.find("parse error"); start != std::string_view::npos) why.remove_prefix(start);
    why = why.substr(0, why.find("; last read"));
    throw Error(ErrorKind::invalid_argument, "the body is not JSON (byte {}): {}", e.byte, why.substr(0, 300));
  } catch (const json::exception& e) {  // a number too large for any type
    throw Error(ErrorKind::invalid_argument, "the body is not JSON that can be read here: {}", std::string_view(e.what()).substr(0, 300));
  }
}

std::string keys_of(const json& object) {
  std::string out;
  for (const auto& [key, value] : object.items()) {
    if (!out.empty()) out += ", ";
    out += key.substr(0, 40);
    if (out.size() > 200) return out + ", ...";
  }
  return out;
}

/// A text: "..." or {"text": "..."}.
std::string read_text(const json& value, const std::string& path) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) {
    if (value.contains("text_pair")) bad(path, "pairs of texts are not supported: send one text");
    if (!value.contains("text"))
      bad(path, fmt::format("expected a text or {{\"text\": ...}}, found an object with the keys [{}]", keys_of(value)));
    if (value.size() > 1) bad(path, fmt::format("unknown keys beside \"text\": [{}]", keys_of(value)));
    if (!value["text"].is_string()) bad(path + ".text", fmt::format("expected a text, found {}", value["text"].type_name()));
    return value["text"].get<std::string>();
  }
  if (value.is_array()) bad(path, "expected a text, found a list: pairs and nested lists are not supported");
  bad(path, fmt::format("expected a text, found {}", value.type_name()));
}

void read_inputs(const json& value, const std::string& path, const InvocationLimits& limits, Question& into) {
  if (!value.is_array()) {
    into.texts.push_back(read_text(value, path));
    return;
  }
  into.is_list = true;
  if (value.empty()) bad(path, "the list is empty: send at least one text");
  if (static_cast<int64_t>(value.size()) > limits.max_client_batch_size)
    throw Error(ErrorKind::too_large, "{}: {} texts: one request takes {}", path, value.size(), limits.max_client_batch_size);
  for (size_t i = 0; i < value.size(); ++i) into.texts.push_back(read_text(value[i], fmt::format("{}[{}]", path, i)));
}

int64_t read_count(const json& value, const std::string& path, int64_t most, std::string_view of_what) {
  if (!value.is_number_integer() || value.get<int64_t>() < 1)  // one over 2^63 wraps to a negative
    bad(path, "expected a whole number from 1");
  if (value.get<int64_t>() > most) bad(path, fmt::format("{} is more than the {} {}", value.get<int64_t>(), most, of_what));
  return value.get<int64_t>();
}

bool read_truncation(const json& value, const std::string& path) {
  if (value.is_boolean()) return value.get<bool>();
  if (value == "longest_first" || value == "only_first") return true;
  if (value == "do_not_truncate") return false;
  bad(path, "expected true or false");
}

ScoreFunction read_function(const json& value, const std::string& path) {
  if (value == "softmax") return ScoreFunction::softmax;
  if (value == "sigmoid") return ScoreFunction::sigmoid;
  if (value == "none") return ScoreFunction::none;
  bad(path, "expected \"softmax\", \"sigmoid\" or \"none\"");
}

Parameters read_parameters(const json& value, const std::string& where, const ModelInfo& model) {
  Parameters out;
  if (value.is_null()) return out;
  if (!value.is_object()) bad(where, fmt::format("expected an object, found {}", value.type_name()));
  for (const auto& [key, item] : value.items()) {
    const std::string path = where + "." + key.substr(0, 60);
    if (key == "top_k") {
      out.top_k_given = true;
      if (!item.is_null()) out.top_k = read_count(item, path, INT64_MAX, "");
    } else if (key == "padding") {
      if (!item.is_boolean() && !item.is_string() && !item.is_null()) bad(path, "expected true or false");
    } else if (key == "truncation") {
      if (!item.is_null()) out.tokenize.truncate = read_truncation(item, path);
    } else if (key == "max_length") {
      if (!item.is_null())
        out.tokenize.max_length = static_cast<int32_t>(read_count(item, path, model.max_length, "tokens this model takes"));
    } else if (key == "function_to_apply") {
      if (!item.is_null()) out.function_to_apply = read_function(item, path);
    } else {
      bad(path, "unknown parameter: there are top_k, function_to_apply, truncation, max_length, padding");
    }
  }
  return out;
}

Question read_question(const json& body, const InvocationLimits& limits, const ModelInfo& model) {
  Question out;
  if (!body.is_object() || !body.contains("inputs")) {
    if (body.is_object() && !body.contains("text") && !body.contains("text_pair"))
      bad("$", fmt::format("expected \"inputs\" with a text or a list of texts, found the keys [{}]", keys_of(body)));
    read_inputs(body, "$", limits, out);
    return out;
  }
  for (const auto& [key, value] : body.items())
    if (key != "inputs" && key != "parameters")
      bad("$", fmt::format("unknown key \"{}\" beside \"inputs\" and \"parameters\"", key.substr(0, 60)));
  read_inputs(body["inputs"], "$.inputs", limits, out);
  if (body.contains("parameters")) out.parameters = read_parameters(body["parameters"], "$.parameters", model);
  return out;
}

std::vector<Question> read_lines(std::string_view body, const InvocationLimits& limits, const ModelInfo& model) {
  std::vector<Question> out;
  int64_t texts = 0;
  for (size_t number = 1; !body.empty(); ++number) {
    const std::string_view line = trimmed(next_piece(body, '\n'));
    if (line.empty()) continue;
    try {
      out.push_back(read_question(parse_json(line, limits), limits, model));
    } catch (const Error& e) {
      throw Error(e.kind(), "line {}: {}", number, e.what());
    }
    texts += static_cast<int64_t>(out.back().texts.size());
    if (texts > limits.max_client_batch_size)
      throw Error(ErrorKind::too_large, "line {}: more than {} texts so far: one request takes no more", number,
                  limits.max_client_batch_size);
  }
  return out;
}

/// The media type of a header value in lower case, without parameters.
std::string media_type(std::string_view value) {
  std::string out(trimmed(value.substr(0, value.find(';'))));
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

void check_charset(std::string_view content_type) {
  std::string_view rest = content_type;
  for (next_piece(rest, ';'); !rest.empty();) {
    std::string_view value = next_piece(rest, ';');
    if (!net::same_word(trimmed(next_piece(value, '=')), "charset")) continue;
    value = trimmed(value);
    if (value.size() > 1 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    if (!net::same_word(value, "utf-8") && !net::same_word(value, "utf8") && !net::same_word(value, "us-ascii"))
      throw Error(ErrorKind::unsupported, "charset '{}' is not supported: send UTF-8", value.substr(0, 60));
  }
}

/// A compressed body would be read as text and answered with nonsense.
void check_encoding(std::string_view encoding) {
  encoding = trimmed(encoding);
  if (!encoding.empty() && !net::same_word(encoding, "identity"))
    throw Error(ErrorKind::unsupported, "content encoding '{}' is not supported: send the body as it is", encoding.substr(0, 60));
}

bool is_json_lines(std::string_view type) {
  return type == "application/jsonlines" || type == "application/x-jsonlines" || type == "application/jsonl" ||
         type == "application/x-ndjson";
}

}  // namespace

Invocation read_invocation(const net::HttpRequest& request, const InvocationLimits& limits, const ModelInfo& model) {
  const std::string_view content_type = request.headers.get("Content-Type").value_or("");
  const std::string type = content_type.empty() ? "application/json" : media_type(content_type);
  const bool plain = type == "text/plain", csv = type == "text/csv", lines = is_json_lines(type);
  if (!plain && !csv && !lines && type != "application/json")
    throw Error(ErrorKind::unsupported,
                "content type '{}' is not supported: send application/json, application/jsonlines, text/plain or text/csv",
                type.substr(0, 100));
  check_charset(content_type);
  check_encoding(request.headers.get("Content-Encoding").value_or(""));
  if (trimmed(request.body).empty() && !(plain && !request.body.empty()))
    throw Error(ErrorKind::invalid_argument, "the body is empty: send a text");
  if (const auto at = invalid_utf8_at(request.body))
    throw Error(ErrorKind::invalid_argument, "the body is not UTF-8: byte {} (counted from 0) is wrong", *at);

  Invocation out;
  out.lines = lines;
  out.accept = lines ? Media::json_lines : Media::json;
  if (lines) {
    out.questions = read_lines(request.body, limits, model);
  } else if (plain) {
    out.questions.push_back({.texts = {request.body}});
  } else if (csv) {
    out.questions.push_back({.texts = read_csv_texts(request.body), .is_list = true});
    if (static_cast<int64_t>(out.questions[0].texts.size()) > limits.max_client_batch_size)
      throw Error(ErrorKind::too_large, "{} records: one request takes {} texts", out.questions[0].texts.size(),
                  limits.max_client_batch_size);
  } else {
    out.questions.push_back(read_question(parse_json(request.body, limits), limits, model));
  }
  return out;
}

std::optional<Media> accepted_media(std::optional<std::string_view> accept, Media preferred) {
  if (!accept || trimmed(*accept).empty()) return preferred;
  std::optional<Media> best;
  double best_q = 0;
  for (std::string_view rest = *accept; !rest.empty();) {
    std::string_view entry = next_piece(rest, ',');
    const std::string type = media_type(entry);
    double q = 1;
    for (next_piece(entry, ';'); !entry.empty();) {
      std::string_view value = next_piece(entry, ';');
      if (!net::same_word(trimmed(next_piece(value, '=')), "q")) continue;
      value = trimmed(value);
      if (std::from_chars(value.data(), value.data() + value.size(), q).ec != std::errc()) q = 0;
    }
    if (q <= best_q) continue;
    if (type == "*/*" || type == "application/*")
      best = preferred;
    else if (type == "application/json")
      best = Media::json;
    else if (is_json_lines(type))
      best = Media::json_lines;
    else
      continue;
    best_q = q;
  }
  return best;
}

std::optional<size_t> invalid_utf8_at(std::string_view bytes) {
  const auto at = [&](size_t i) { return i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : uint8_t{0}; };
  const auto tail = [&](size_t i) { return (at(i) & 0xC0) == 0x80; };
  for (size_t i = 0; i < bytes.size();) {
    const uint8_t c = at(i), next = at(i + 1);
    size_t length = 0;  // Unicode 15, table 3-7
    if (c < 0x80)
      length = 1;
    else if (c >= 0xC2 && c <= 0xDF && tail(i + 1))
      length = 2;
    else if (c >= 0xE0 && c <= 0xEF && tail(i + 1) && tail(i + 2) && !(c == 0xE0 && next < 0xA0) && !(c == 0xED && next > 0x9F))
      length = 3;
    else if (c >= 0xF0 && c <= 0xF4 && tail(i + 1) && tail(i + 2) && tail(i + 3) && !(c == 0xF0 && next < 0x90) &&
             !(c == 0xF4 && next > 0x8F))
      length = 4;
    else
      return i;
    i += length;
  }
  return std::nullopt;
}

std::vector<std::string> read_csv_texts(std::string_view body) {
  std::vector<std::string> out;
  size_t line = 1;
  const auto fail = [&](std::string_view what) { throw Error(ErrorKind::invalid_argument, "CSV line {}: {}", line, what); };
  for (size_t i = 0; i < body.size();) {
    std::string text;
    const bool quoted = body[i] == '"';
    if (quoted) {
      const size_t start = line;
      for (++i;; ++i) {
        if (i >= body.size()) throw Error(ErrorKind::invalid_argument, "CSV line {}: a quote that is never closed", start);
        if (body[i] == '"' && (i + 1 >= body.size() || body[i + 1] != '"')) break;
        if (body[i] == '"') ++i;
        line += body[i] == '\n';
        text.push_back(body[i]);
      }
      ++i;
    } else {
      const size_t end = std::min(body.find_first_of(",\"\r\n", i), body.size());
      text = body.substr(i, end - i);
      i = end;
    }
    if (i < body.size() && body[i] == ',') fail("more than one field: put the text in quotes");
    if (i < body.size() && body[i] == '\r' && i + 1 < body.size() && body[i + 1] == '\n') ++i;
    if (i < body.size() && body[i] != '\n' && body[i] != '\r') fail("a quote inside a field that does not begin with one");
    ++i;
    ++line;
    if (text.empty() && !quoted) continue;
    if (out.empty() && text == "inputs" && line == 2) continue;  // the header that the Hugging Face containers ask for
    out.push_back(std::move(text));
  }
  if (out.empty()) throw Error(ErrorKind::invalid_argument, "no record in the CSV body");
  return out;
}

}  // namespace muster::serve
