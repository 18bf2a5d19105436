#include "train/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace muster::train {
namespace {

/// Code points of a text: near enough to columns for a table.
size_t columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}
std::string left(std::string_view text, size_t width) {
  return std::string(text) + std::string(width > columns(text) ? width - columns(text) : 0, ' ');
}

std::string class_table(const Metrics& m, const std::vector<std::string>& labels, size_t width) {
  std::string out = fmt::format("{}  precision   recall       f1  support\n", left("", width));
  for (size_t c = 0; c < m.classes.size(); ++c) {
    const ClassMetrics& k = m.classes[c];
    out += fmt::format("{}  {:9.4f}{:9.4f}{:9.4f}{:9}\n", left(labels.at(c), width), k.precision, k.recall, k.f1, k.support);
  }
  out +=
      fmt::format("{}  {:9.4f}{:9.4f}{:9.4f}{:9}\n", left("macro average", width), m.precision_macro, m.recall_macro, m.f1_macro, m.rows);
  return out;
}

std::string confusion_table(const Metrics& m, const std::vector<std::string>& labels, size_t width) {
  std::string out = "\nconfusion (row: label, column: prediction)\n" + left("", width);
  constexpr size_t kColumn = 8;
  for (size_t c = 0; c < m.classes.size(); ++c) out += fmt::format("{:>{}}", c, kColumn);
  out += "\n";
  for (size_t c = 0; c < m.classes.size(); ++c) {
    out += left(fmt::format("{} {}", c, labels.at(c)), width);
    for (const int64_t n : m.confusion[c]) out += fmt::format("{:>{}}", n, kColumn);
    out += "\n";
  }
  return out;
}

}  // namespace

std::string metrics_table(const Evaluation& e, const std::vector<std::string>& labels, std::string_view task) {
  std::string out = fmt::format("{} rows", e.rows);
  if (!e.has_labels) return out + ", no labels: nothing to compare with\n";
  const Metrics& m = e.metrics;
  out +=
      fmt::format("  loss {:.4f}  accuracy {:.4f}  macro-F1 {:.4f}  macro recall {:.4f}\n", e.loss, m.accuracy, m.f1_macro, m.recall_macro);
  if (const auto own = tweeteval_metric(task, m)) out += fmt::format("TweetEval {}: {} {:.4f}\n", task, own->first, own->second);
  size_t width = std::string_view("macro average").size();
  for (const auto& label : labels) width = std::max(width, columns(label) + 3);  // 3: number and space before it in the confusion matrix
  return out + "\n" + class_table(m, labels, width) + confusion_table(m, labels, width);
}

std::string metrics_json(const Evaluation& e, const std::vector<std::string>& labels, std::string_view task) {
  nlohmann::ordered_json j{{"rows", e.rows}, {"seconds", e.seconds}};
  if (e.has_labels) {
    j["loss"] = e.loss;
    for (const auto& [name, value] : scalars(e.metrics)) j[name] = value;
    auto classes = nlohmann::ordered_json::array();
    for (size_t c = 0; c < e.metrics.classes.size(); ++c) {
      const ClassMetrics& k = e.metrics.classes[c];
      classes.push_back({{"label", labels.at(c)},
                         {"precision", k.precision},
                         {"recall", k.recall},
                         {"f1", k.f1},
                         {"support", k.support},
                         {"predicted", k.predicted}});
    }
    j["classes"] = classes;
    j["confusion"] = e.metrics.confusion;
    if (const auto own = tweeteval_metric(task, e.metrics))
      j["tweeteval"] = {{"task", task}, {"metric", own->first}, {"value", own->second}};
  }
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace muster::train
