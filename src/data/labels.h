// From labels as files spell them to class numbers, in one fixed order.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::data {

/// TweetEval's mapping.txt: "id TAB name [TAB more]" a line. Throws Error(invalid_argument) with file and line.
std::map<int64_t, std::string> read_mapping(const std::string& file);

/// How labels are spelled before they are compared: no white space around, "1.0" as "1".
std::string canonical_label(std::string_view label);

/// The distinct labels in order: numbers by value when all are numbers, else by text. "" is no label.
/// Throws Error(invalid_argument) naming `file` when there are more than 10,000.
std::vector<std::string> collect_label_names(const std::vector<std::string>& labels, const std::string& file);

/// A label is one of the names; or an id of the mapping, which stands for a name; or, where names are words, the number of a name.
class LabelMap {
 public:
  /// `mapping` may be empty. Throws Error(invalid_argument) on a name given twice.
  LabelMap(std::vector<std::string> names, const std::map<int64_t, std::string>& mapping);
  [[nodiscard]] std::optional<int32_t> find(const std::string& canonical) const;
  /// "0 anger, 1 joy, 2 optimism", the first 20, for messages.
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> numbers_;
};

}  // namespace muster::data
