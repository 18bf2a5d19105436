// Masked language modelling (and next-sentence prediction): the program of loss and gradients, and its evaluation on held-out shards.
// Source: Devlin et al. 2019, section 3.1; the heads are models/pretrainer.h.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/pretraining_loader.h"
#include "models/config.h"
#include "models/pretrainer.h"
#include "models/weights.h"
#include "runtime/compile.h"

namespace muster::train {

/// Loss and its gradients: build_pretrainer's program with an output "grad:NAME" for each parameter.
graph::Graph build_pretraining(const models::ModelConfig& config);

/// Inputs of a batch whose losses are weighed by 1 / masked of the masked positions and 1 / sequences, the totals of the step.
/// Throws Error(invalid_argument) for a batch without next-sentence labels where the model has that head.
models::Inputs pretraining_inputs(const models::ModelConfig& config, const data::PretrainingBatch& batch, int64_t masked,
                                  int64_t sequences);

/// Sums over masked positions and sequences.
struct PretrainingScores {
  double mlm_loss = 0, nsp_loss = 0;  // as weighed by the inputs
  int64_t masked = 0, correct = 0;    // positions; those whose label has the largest logit
  int64_t sequences = 0, next_correct = 0;
  void add(const runtime::TensorMap& outputs, const data::PretrainingBatch& batch);
};

struct PretrainingEvaluation {
  double mlm_loss = 0, perplexity = 0, mlm_accuracy = 0;  // means over all masked positions; perplexity = exp(mlm_loss)
  std::optional<double> nsp_loss, nsp_accuracy;           // of a model with that head
  int64_t sequences = 0, masked = 0, batches = 0, tokens = 0;
  double seconds = 0;
};

/// A compiled model without dropout, over parameters it shares with the caller.
class PretrainingEvaluator {
 public:
  PretrainingEvaluator(models::ModelConfig config, const models::Parameters& parameters, const runtime::Options& options,
                       ThreadPool& threads);
  void parameters_changed() { session_->parameters_changed(); }
  /// One pass over the loader (which does not shuffle). None when `stop` became true.
  std::optional<PretrainingEvaluation> run(data::PretrainingLoader& loader, const std::atomic<bool>* stop = nullptr);

 private:
  models::ModelConfig config_;
  std::unique_ptr<runtime::Session> session_;
};

}  // namespace muster::train
