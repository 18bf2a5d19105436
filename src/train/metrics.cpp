#include "train/metrics.h"

#include <algorithm>
#include <array>

#include "core/error.h"

namespace muster::train {
namespace {

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

void fill_class(const Metrics& metrics, size_t c, ClassMetrics& out) {
  for (size_t other = 0; other < metrics.classes.size(); ++other) {
    out.support += metrics.confusion[c][other];
    out.predicted += metrics.confusion[other][c];
  }
  const auto hits = static_cast<double>(metrics.confusion[c][c]);
  out.precision = ratio(hits, static_cast<double>(out.predicted));
  out.recall = ratio(hits, static_cast<double>(out.support));
  out.f1 = ratio(2 * hits, static_cast<double>(out.predicted + out.support));
}

}  // namespace

Metrics compute_metrics(std::span<const int32_t> labels, std::span<const int32_t> predictions, int64_t classes) {
  if (labels.size() != predictions.size())
    throw Error(ErrorKind::invalid_argument, "[metrics] {} labels, but {} predictions", labels.size(), predictions.size());
  Metrics m;
  m.confusion.assign(static_cast<size_t>(classes), std::vector<int64_t>(static_cast<size_t>(classes)));
  m.classes.resize(static_cast<size_t>(classes));
  int64_t hits = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0) continue;
    if (labels[i] >= classes || predictions[i] < 0 || predictions[i] >= classes)
      throw Error(ErrorKind::invalid_argument, "[metrics] row {}: label {}, prediction {}; there are {} classes", i, labels[i],
                  predictions[i], classes);
    ++m.confusion[static_cast<size_t>(labels[i])][static_cast<size_t>(predictions[i])];
    ++m.rows;
    hits += labels[i] == predictions[i];
  }
  double occurring = 0;
  for (size_t c = 0; c < m.classes.size(); ++c) {
    ClassMetrics& k = m.classes[c];
    fill_class(m, c, k);
    if (k.support == 0 && k.predicted == 0) continue;
    ++occurring;
    m.precision_macro += k.precision;
    m.recall_macro += k.recall;
    m.f1_macro += k.f1;
    m.f1_weighted += k.f1 * static_cast<double>(k.support);
  }
  m.accuracy = ratio(static_cast<double>(hits), static_cast<double>(m.rows));
  m.precision_macro = ratio(m.precision_macro, occurring);
  m.recall_macro = ratio(m.recall_macro, occurring);
  m.f1_macro = ratio(m.f1_macro, occurring);
  m.f1_weighted = ratio(m.f1_weighted, static_cast<double>(m.rows));
  return m;
}

std::vector<NamedValue> scalars(const Metrics& m) {
  return {{"accuracy", m.accuracy},
          {"f1_macro", m.f1_macro},
          {"f1_weighted", m.f1_weighted},
          {"precision_macro", m.precision_macro},
          {"recall_macro", m.recall_macro}};
}

std::string tweeteval_task(std::string_view path) {
  constexpr std::array<std::string_view, 7> kTasks{"emoji", "emotion", "hate", "irony", "offensive", "sentiment", "stance"};
  while (!path.empty()) {
    const size_t slash = path.find_last_of('/');
    const std::string_view part = slash == std::string_view::npos ? path : path.substr(slash + 1);
    if (std::find(kTasks.begin(), kTasks.end(), part) != kTasks.end()) return std::string(part);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
  }
  return {};
}

std::optional<NamedValue> tweeteval_metric(std::string_view task, const Metrics& m) {
  if (task == "emoji" || task == "emotion" || task == "hate" || task == "offensive") return NamedValue{"f1_macro", m.f1_macro};
  if (task == "irony" && m.classes.size() > 1) return NamedValue{"f1_irony", m.classes[1].f1};
  if (task == "sentiment") return NamedValue{"recall_macro", m.recall_macro};
  if (task == "stance" && m.classes.size() > 2) return NamedValue{"f1_against_favor", (m.classes[1].f1 + m.classes[2].f1) / 2};
  return std::nullopt;
}

}  // namespace muster::train
