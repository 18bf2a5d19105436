// Runs a classifier over a dataset: logits, predictions, loss, metrics. Used during training, by `muster eval` and by `muster predict`.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/threads.h"
#include "data/dataset.h"
#include "data/tokenize.h"
#include "models/config.h"
#include "models/weights.h"
#include "runtime/compile.h"
#include "train/metrics.h"

namespace muster::train {

struct Evaluation {
  int64_t rows = 0, classes = 0, batches = 0, tokens = 0;
  std::vector<float> logits;         // [rows, classes]
  std::vector<int32_t> predictions;  // the class of the highest logit, the first of equal ones
  bool has_labels = false;           // loss and metrics are there
  double loss = 0;                   // mean cross entropy over rows with a label: neither smoothed nor weighted
  Metrics metrics;
  double seconds = 0;
};

/// A compiled classifier without dropout, over parameters it shares with the caller.
class Evaluator {
 public:
  /// The tensors of `parameters` are shared, not copied. `threads` outlives the object.
  Evaluator(models::ModelConfig config, const models::Parameters& parameters, const runtime::Options& options, ThreadPool& threads);

  /// Call after the parameters' values changed.
  void parameters_changed() { session_->parameters_changed(); }

  /// None when `stop` became true meanwhile. Throws Error(invalid_argument) naming the row when a logit is NaN or infinite.
  std::optional<Evaluation> run(const data::TokenizedDataset& dataset, int64_t batch_size, const std::atomic<bool>* stop = nullptr);

 private:
  models::ModelConfig config_;
  std::unique_ptr<runtime::Session> session_;
};

/// Softmax of row `row` in f64: one score a class.
std::vector<double> scores(const Evaluation& evaluation, int64_t row);

/// The predictions file: one name of a label a line (TweetEval's script wants numbers: `as_numbers`), whole or not at all.
void write_predictions(const std::string& path, const Evaluation& evaluation, const std::vector<std::string>& labels, bool as_numbers);

}  // namespace muster::train
