#include "data/labels.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/error.h"
#include "data/content.h"
#include "storage/printable.h"
#include "text/unicode.h"

namespace muster::data {
namespace {

constexpr size_t kMaxLabels = 10'000;

std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || !(value - value == 0)) return std::nullopt;
  return value;
}

}  // namespace

std::map<int64_t, std::string> read_mapping(const std::string& file) {
  const std::string content = read_content(file, 1 << 20);
  std::map<int64_t, std::string> result;
  LineReader lines(content);
  for (std::string_view line; lines.next(line);) {
    if (trimmed(line).empty()) continue;
    const auto bad = [&](std::string_view why) {
      return Error(ErrorKind::invalid_argument, "{}:{}: {}; write 'number TAB name'", file, lines.number(), why);
    };
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos) throw bad("no tab between number and name");
    const std::optional<int64_t> id = parse_integer(trimmed(line.substr(0, tab)));
    if (!id) throw bad(fmt::format("'{}' is not a number", storage::printable(line.substr(0, tab), 60)));
    const std::string_view rest = line.substr(tab + 1), name = trimmed(rest.substr(0, rest.find('\t')));
    if (name.empty() || !text::is_valid_utf8(name)) throw bad("the name is empty or not UTF-8");
    if (!result.emplace(*id, name).second) throw bad(fmt::format("the number {} is there twice", *id));
    if (result.size() > kMaxLabels) throw bad(fmt::format("more than {} labels", kMaxLabels));
  }
  if (result.empty()) throw Error(ErrorKind::invalid_argument, "{}: no labels in it; write 'number TAB name' lines", file);
  return result;
}

std::string canonical_label(std::string_view label) {
  label = trimmed(label);
  const size_t dot = label.find('.');
  const bool integral = dot != std::string_view::npos && dot > 0 && label.find_first_not_of('0', dot + 1) == std::string_view::npos &&
                        parse_integer(label.substr(0, dot));
  return std::string(integral ? label.substr(0, dot) : label);
}

std::vector<std::string> collect_label_names(const std::vector<std::string>& labels, const std::string& file) {
  std::set<std::string, std::less<>> distinct;
  for (const std::string& label : labels) {
    if (label.empty() || distinct.contains(label)) continue;
    distinct.insert(label);
    if (distinct.size() > kMaxLabels)
      throw Error(ErrorKind::invalid_argument, "{}: more than {} different labels; check that --label_column names the labels", file,
                  kMaxLabels);
  }
  std::vector<std::string> names(distinct.begin(), distinct.end());
  if (std::all_of(names.begin(), names.end(), [](const std::string& name) { return parse_number(name).has_value(); }))
    std::stable_sort(names.begin(), names.end(),
                     [](const std::string& a, const std::string& b) { return *parse_number(a) < *parse_number(b); });
  return names;
}

LabelMap::LabelMap(std::vector<std::string> names, const std::map<int64_t, std::string>& mapping) : names_(std::move(names)) {
  for (size_t i = 0; i < names_.size(); ++i)
    if (!numbers_.emplace(names_[i], static_cast<int32_t>(i)).second)
      throw Error(ErrorKind::invalid_argument, "the label name '{}' is there twice; names must differ", storage::printable(names_[i], 60));
  // A model without names of its own ("LABEL_0", ...) counts as its data does.
  const auto is_generic = [&](size_t i) { return names_[i] == "LABEL_" + std::to_string(i); };
  bool generic = !names_.empty(), words = !names_.empty();
  for (size_t i = 0; i < names_.size(); ++i) {
    generic = generic && is_generic(i);
    words = words && !parse_number(names_[i]);
  }
  if (!mapping.empty()) {
    int32_t place = 0;
    for (const auto& [id, name] : mapping) {
      const int32_t ordinal = place++;
      const auto found = numbers_.find(name);
      std::optional<int32_t> number;
      if (found != numbers_.end())
        number = found->second;
      else if (generic && ordinal < static_cast<int32_t>(names_.size()))
        number = ordinal;
      if (!number) continue;
      numbers_.emplace(std::to_string(id), *number);
      numbers_.emplace(name, *number);
    }
  } else if (words) {
    for (size_t i = 0; i < names_.size(); ++i) numbers_.emplace(std::to_string(i), static_cast<int32_t>(i));
  }
}

std::optional<int32_t> LabelMap::find(const std::string& canonical) const {
  const auto found = numbers_.find(canonical);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

std::string LabelMap::describe() const {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(names_.size(), 20); ++i)
    text += fmt::format("{}{} {}", i ? ", " : "", i, storage::printable(names_[i], 60));
  if (names_.size() > 20) text += fmt::format(", ... ({} in all)", names_.size());
  return text;
}

}  // namespace muster::data
