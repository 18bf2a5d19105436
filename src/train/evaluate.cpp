#include "train/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "models/classifier.h"
#include "models/inputs.h"
#include "storage/file.h"

namespace muster::train {
namespace {

/// -log softmax(logits)[label], in f64.
double cross_entropy(std::span<const float> logits, int32_t label) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - top);
  return top + std::log(sum) - static_cast<double>(logits[static_cast<size_t>(label)]);
}

std::span<const float> logits_of(const Evaluation& e, int64_t row) {
  return std::span(e.logits).subspan(static_cast<size_t>(row * e.classes), static_cast<size_t>(e.classes));
}

void finish(Evaluation& e, const data::TokenizedDataset& dataset) {
  int64_t labelled = 0;
  double loss = 0;
  for (int64_t r = 0; r < e.rows; ++r) {
    const auto logits = logits_of(e, r);
    for (const float x : logits)
      if (!std::isfinite(x))
        throw Error(ErrorKind::invalid_argument, "[evaluate] row {} (from 0): a logit is {}; the weights of the model are broken", r, x);
    e.predictions.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    const int32_t label = dataset.labels.empty() ? -1 : dataset.labels[static_cast<size_t>(r)];
    if (label < 0) continue;
    if (label >= e.classes)
      throw Error(ErrorKind::invalid_argument, "[evaluate] row {} (from 0): label {}; the model has {} classes", r, label, e.classes);
    ++labelled;
    loss += cross_entropy(logits, label);
  }
  e.has_labels = labelled > 0;
  if (!e.has_labels) return;
  e.loss = loss / static_cast<double>(labelled);
  e.metrics = compute_metrics(dataset.labels, e.predictions, e.classes);
}

}  // namespace

Evaluator::Evaluator(models::ModelConfig config, const models::Parameters& parameters, const runtime::Options& options, ThreadPool& threads)
    : config_(std::move(config)),
      session_(std::make_unique<runtime::Session>(runtime::compile(models::build_classifier(config_), named(options, "infer"), threads),
                                                  parameters)) {}

std::optional<Evaluation> Evaluator::run(const data::TokenizedDataset& dataset, int64_t batch_size, const std::atomic<bool>* stop) {
  const auto start = std::chrono::steady_clock::now();
  const auto& tokens = dataset.tokens;
  Evaluation e;
  e.rows = dataset.rows(), e.classes = config_.num_labels(), e.tokens = tokens.tokens();
  e.logits.resize(static_cast<size_t>(e.rows * e.classes));
  for (int64_t begin = 0; begin < e.rows; begin += batch_size, ++e.batches) {
    if (stop && stop->load()) return std::nullopt;
    const int64_t end = std::min(begin + batch_size, e.rows);
    const auto first = static_cast<size_t>(tokens.cu_seqlens[static_cast<size_t>(begin)]);
    const size_t count = static_cast<size_t>(tokens.cu_seqlens[static_cast<size_t>(end)]) - first;
    std::vector<int32_t> bounds;
    for (int64_t r = begin; r <= end; ++r) bounds.push_back(tokens.cu_seqlens[static_cast<size_t>(r)] - static_cast<int32_t>(first));
    const auto types = tokens.type_ids.empty() ? std::span<const int32_t>() : std::span(tokens.type_ids).subspan(first, count);
    const auto& outputs = session_->run(models::make_inputs(config_, std::span(tokens.ids).subspan(first, count), types, bounds));
    const auto logits = outputs.find("logits")->second.as<float>();
    std::copy(logits.begin(), logits.end(), e.logits.begin() + begin * e.classes);
  }
  finish(e, dataset);
  e.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return e;
}

std::vector<double> scores(const Evaluation& evaluation, int64_t row) {
  const auto logits = logits_of(evaluation, row);
  const double top = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p;
  double sum = 0;
  for (const float x : logits) sum += p.emplace_back(std::exp(static_cast<double>(x) - top));
  for (double& x : p) x /= sum;
  return p;
}

void write_predictions(const std::string& path, const Evaluation& evaluation, const std::vector<std::string>& labels, bool as_numbers) {
  std::string text;
  for (const int32_t p : evaluation.predictions) text += (as_numbers ? std::to_string(p) : labels.at(static_cast<size_t>(p))) + "\n";
  storage::write_file_atomic(path, text, "predictions");
}

}  // namespace muster::train
