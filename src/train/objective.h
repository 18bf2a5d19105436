// What a run minimises, behind one interface for the loop: its data, its program of loss and gradients, its evaluation. Two are there:
// labelled texts (classification.cpp) and masked language modelling (pretraining.cpp).
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/threads.h"
#include "models/config.h"
#include "models/weights.h"
#include "runtime/compile.h"
#include "train/trainer.h"

namespace muster::train {

using Scalars = std::vector<std::pair<std::string, double>>;

/// The loss of one step and what it was made of.
struct StepOutcome {
  double loss = 0;
  int64_t tokens = 0, samples = 0;
  Scalars parts;            // for the log, beside the loss: "mlm_loss", ...
  double data_seconds = 0;  // of the time, what went into making or awaiting batches
  double flops = 0;         // models/flops.h
};

class Objective {
 public:
  virtual ~Objective() = default;

  [[nodiscard]] virtual int64_t samples() const = 0;
  [[nodiscard]] virtual int64_t batches_per_epoch() const = 0;
  /// What the data is, as a hash for the run's identity, and a line about it for the log.
  [[nodiscard]] virtual std::string data_fingerprint() const = 0;
  [[nodiscard]] virtual std::string describe_data() const = 0;

  /// Called once, before what follows. `config`: with the dropouts of this run.
  virtual void compile(const models::ModelConfig& config, const runtime::Options& options) = 0;

  /// The tensors that the optimizer updates, and their gradients after run(): the same names and memory each time.
  [[nodiscard]] virtual const models::Parameters& parameters() const = 0;
  [[nodiscard]] virtual const models::Parameters& gradients() const = 0;

  /// Forward and backward over the batches of step `step` (counted from 0): a function of arguments, data, weights and step only.
  virtual StepOutcome run(int64_t step) = 0;
  /// What run() runs.
  [[nodiscard]] virtual runtime::Session& session() = 0;
  /// The rows of the last run(), for messages.
  [[nodiscard]] virtual std::string last_rows() const = 0;
  /// After the optimizer changed parameters() with this rate and decay.
  virtual void updated(double learning_rate, double weight_decay) = 0;

  /// Brings the whole model, inputs.parameters, up to date; takes the weights from there again.
  virtual void write_back() = 0;
  virtual void read_again() = 0;

  /// "eval_loss" first. None when `stop` became true meanwhile.
  virtual std::optional<Scalars> evaluate(const std::atomic<bool>* stop) = 0;
};

/// By what the inputs hold. Checks them; tokenises texts. The references outlive the object.
/// Throws Error(invalid_argument|usage) on data that do not fit the model or the arguments.
std::unique_ptr<Objective> make_objective(const TrainingArguments& arguments, const TrainInputs& inputs, ThreadPool& threads);

// One each in classification.cpp and pretraining.cpp.
std::unique_ptr<Objective> make_classification(const TrainingArguments& arguments, const TrainInputs& inputs, ThreadPool& threads);
std::unique_ptr<Objective> make_pretraining(const TrainingArguments& arguments, const TrainInputs& inputs, ThreadPool& threads);

}  // namespace muster::train
