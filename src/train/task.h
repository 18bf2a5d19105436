// The classification task: what a window of batches is, and the program that computes its loss and gradients.
// A later task (masked language modelling) brings another program and other inputs, the loop stays.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/threads.h"
#include "data/loader.h"
#include "models/config.h"
#include "models/flops.h"
#include "models/inputs.h"
#include "models/weights.h"
#include "runtime/compile.h"

namespace muster::train {

/// The graph with an output "grad:NAME" for each parameter: the gradient of its output "loss".
graph::Graph with_gradients(graph::Graph graph);

/// Loss and its gradients: build_classifier's program with an output "grad:NAME" for each parameter.
graph::Graph build_training(const models::ModelConfig& config, double label_smoothing);

/// The batches whose gradients make one optimizer step.
struct Window {
  std::vector<models::Inputs> batches;
  std::vector<int64_t> rows;  // of the dataset, batch after batch
  int64_t tokens = 0;
  models::BatchSize size;
};

/// Step `step` (counted from 0) of a run: its batches with labels and sample weights. A row weighs class_weights[label] (1 when empty)
/// over the sum of the whole window, so that the loss is the mean over the window however it is cut into batches.
Window make_window(const data::Loader& loader, const models::ModelConfig& config, const std::vector<double>& class_weights, int64_t step,
                   int64_t batches_per_step);

/// Seed of the dropouts of one batch: a function of the run's seed and the batch's place in the run only.
uint64_t dropout_seed(uint64_t seed, int64_t step, int64_t batch_of_window);

class ClassificationTask {
 public:
  /// Shares the tensors of `parameters`. `threads` outlives the object.
  ClassificationTask(const models::ModelConfig& config, const models::Parameters& parameters, double label_smoothing,
                     const runtime::Options& options, ThreadPool& threads);

  /// Forward and backward over the window: the loss, with gradients() those of the whole window.
  double run(const Window& window, uint64_t seed, int64_t step);
  [[nodiscard]] const models::Parameters& gradients() const { return gradients_; }

  [[nodiscard]] runtime::Session& session() { return *session_; }
  /// Call after the parameters' values changed.
  void parameters_changed() { session_->parameters_changed(); }

 private:
  models::Parameters gradients_;
  runtime::TensorMap outputs_;
  std::unique_ptr<runtime::Session> session_;
};

}  // namespace muster::train
