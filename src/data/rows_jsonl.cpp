// JSON Lines: one object a line.
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/content.h"
#include "data/labels.h"
#include "data/rows.h"
#include "storage/printable.h"

namespace muster::data {
namespace {

using Json = nlohmann::json;

std::string keys_of(const Json& object) {
  std::string text;
  for (const auto& [key, value] : object.items()) {
    if (text.size() > 200) return text + ", ...";
    text += (text.empty() ? "" : ", ") + storage::printable(key, 60);
  }
  return text.empty() ? "none" : text;
}

/// The library's reason without its prefix and place, which count lines of their own.
std::string reason_of(const Json::parse_error& error) {
  std::string text = error.what();
  if (const size_t at = text.find(": "); at != std::string::npos) text.erase(0, at + 2);
  return fmt::format("not valid JSON at byte {}: {}", error.byte, storage::printable(text, 200));
}

/// One row at a time, so that each problem has one way out.
class RowReader {
 public:
  explicit RowReader(const ReadOptions& options) : options_(options) {}
  std::string text, pair, label;
  bool has_label = false;

  /// The problem, if there is one.
  std::optional<std::string> read(std::string_view line) {
    if (auto problem = text_problem(line)) return problem;
    if (line.find('\0') != std::string_view::npos) return "a NUL byte";  // the JSON library would take it for the end
    Json json;
    try {
      json = Json::parse(line);
    } catch (const Json::parse_error& error) {
      return reason_of(error);
    }
    if (!json.is_object()) return fmt::format("{} where an object is expected ({{\"text\": ..., \"label\": ...}})", json.type_name());
    if (auto problem = take_text(json, options_.text_column, text)) return problem;
    pair.clear();
    if (!options_.text_pair_column.empty())
      if (auto problem = take_text(json, options_.text_pair_column, pair)) return problem;
    return take_label(json);
  }

 private:
  static std::optional<std::string> take_text(Json& json, const std::string& key, std::string& to) {
    const auto found = json.find(key);
    if (found == json.end()) return fmt::format("no key '{}' (found: {})", key, keys_of(json));
    if (!found->is_string()) return fmt::format("'{}' is {} where text is expected", key, found->type_name());
    to = std::move(found->get_ref<std::string&>());
    return std::nullopt;
  }

  std::optional<std::string> take_label(const Json& json) {
    const std::string& key = options_.label_column;
    const auto found = json.find(key);
    label.clear();
    has_label = found != json.end() && !found->is_null();
    if (!has_label) {
      if (!options_.require_labels) return std::nullopt;
      return found == json.end() ? fmt::format("no key '{}' (found: {})", key, keys_of(json)) : fmt::format("'{}' is null", key);
    }
    if (found->is_string())
      label = canonical_label(found->get_ref<const std::string&>());
    else if (found->is_number() || found->is_boolean())
      label = canonical_label(found->dump());
    else
      return fmt::format("'{}' is {} where a name or number is expected", key, found->type_name());
    if (label.empty() && options_.require_labels) return "the label is empty";
    return std::nullopt;
  }

  const ReadOptions& options_;
};

}  // namespace

RawRows read_jsonl_rows(const Source& source, const ReadOptions& options, BadRows& bad) {
  const std::string content = read_content(source.text_file, options.max_bytes);
  if (trimmed(content).starts_with('['))
    throw Error(ErrorKind::invalid_argument, "{}:1: a JSON array; write one object a line (jq -c '.[]' makes it so)", source.text_file);
  RawRows rows;
  RowReader row(options);
  LineReader lines(content);
  for (std::string_view line; lines.next(line);) {
    if (trimmed(line).empty()) continue;
    if (const auto problem = row.read(line)) {
      bad.report(source.text_file, lines.number(), *problem);
      continue;
    }
    rows.labelled = rows.labelled || row.has_label;
    rows.add(std::move(row.text), std::move(row.pair), std::move(row.label), lines.number());
  }
  return rows;
}

}  // namespace muster::data
