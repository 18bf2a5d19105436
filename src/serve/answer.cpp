#include "serve/answer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

namespace muster::serve {
namespace {

/// What every answer repeats: the labels as JSON.
std::vector<std::string> quoted(const std::vector<std::string>& labels) {
  std::vector<std::string> out;
  out.reserve(labels.size());
  for (const std::string& label : labels) out.push_back(net::json_quote(label));
  return out;
}

class Writer {
 public:
  explicit Writer(const ModelInfo& model) : model_(model), labels_(quoted(model.labels)) {}

  /// One text's part of an answer: an object, or a list of them when the request gave top_k.
  void text(std::string& out, const ItemResult& result, const Parameters& parameters) const {
    const std::vector<float> scores = scores_of(result.logits, parameters.function_to_apply.value_or(model_.score_function));
    if (!parameters.top_k_given) return object(out, ranked(result.logits, 1).front(), scores);
    out.push_back('[');
    bool first = true;
    for (const size_t label : ranked(result.logits, parameters.top_k)) {
      if (!std::exchange(first, false)) out += ", ";
      object(out, label, scores);
    }
    out.push_back(']');
  }

  /// A question's answer. A single text without top_k is a list of one object all the same, as the pipeline gives it.
  void question(std::string& out, const Question& question, std::span<const ItemResult> results) const {
    const bool brackets = question.is_list || !question.parameters.top_k_given;
    if (brackets) out.push_back('[');
    for (size_t i = 0; i < results.size(); ++i) {
      if (i > 0) out += ", ";
      text(out, results[i], question.parameters);
    }
    if (brackets) out.push_back(']');
  }

 private:
  void object(std::string& out, size_t label, std::span<const float> scores) const {
    out.append(R"({"label": )").append(labels_[label]).append(R"(, "score": )");
    append_number(out, scores[label]);
    out.push_back('}');
  }

  const ModelInfo& model_;
  std::vector<std::string> labels_;
};

}  // namespace

std::vector<float> scores_of(std::span<const float> logits, ScoreFunction function) {
  std::vector<float> out(logits.begin(), logits.end());
  switch (function) {
    case ScoreFunction::none: break;
    case ScoreFunction::sigmoid:
      for (float& x : out) x = static_cast<float>(1.0 / (1.0 + std::exp(-static_cast<double>(x))));
      break;
    case ScoreFunction::softmax: {
      const double top = logits.empty() ? 0 : *std::max_element(logits.begin(), logits.end());
      double sum = 0;
      for (const float x : logits) sum += std::exp(x - top);
      for (float& x : out) x = static_cast<float>(std::exp(x - top) / sum);
    }
  }
  return out;
}

std::vector<size_t> ranked(std::span<const float> logits, std::optional<int64_t> top_k) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (top_k && *top_k < static_cast<int64_t>(order.size())) order.resize(static_cast<size_t>(*top_k));
  return order;
}

void append_number(std::string& out, float value) {
  std::array<char, 32> digits;  // NOLINT: to_chars writes it
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  const std::string_view text(digits.data(), static_cast<size_t>(end - digits.data()));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

std::string write_answer(const Invocation& invocation, std::span<const ItemResult> results, const ModelInfo& model) {
  const Writer writer(model);
  std::string out;
  const bool as_lines = invocation.accept == Media::json_lines, wrapped = invocation.lines && !as_lines;
  if (wrapped) out.push_back('[');
  bool first = true;
  for (const Question& question : invocation.questions) {
    const auto own = results.first(question.texts.size());
    results = results.subspan(own.size());
    if (as_lines && !invocation.lines && question.is_list) {
      for (const ItemResult& result : own) {
        writer.text(out, result, question.parameters);
        out.push_back('\n');
      }
      continue;
    }
    if (wrapped && !std::exchange(first, false)) out += ", ";
    writer.question(out, question, own);
    if (as_lines) out.push_back('\n');
  }
  if (wrapped) out.push_back(']');
  return out;
}

}  // namespace muster::serve
