// The parts of one training run, wired together, and the things it does at the borders of steps. Internal to trainer.cpp, which has the
// loop.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "runtime/compile.h"
#include "storage/file.h"
#include "train/checkpoint_writer.h"
#include "train/identity.h"
#include "train/meter.h"
#include "train/metrics_log.h"
#include "train/objective.h"
#include "train/optimizer.h"
#include "train/output.h"
#include "train/progress.h"
#include "train/schedule.h"
#include "train/state.h"
#include "train/step_trace.h"
#include "train/tensorboard.h"
#include "train/trainer.h"

namespace muster::train {

class Run {
 public:
  /// Checks, tokenises, compiles; resumes when asked to.
  Run(TrainingArguments arguments, TrainInputs inputs, ThreadPool& threads);

  /// One optimizer step: window, gradients, clipping, update.
  void step();
  /// What is due after state().global_step: log line, evaluation, checkpoint. May be called again for the same step after a resume: what
  /// was done is not done twice.
  void after_step();

  [[nodiscard]] const TrainState& state() const { return state_; }
  [[nodiscard]] bool finished() const { return state_.global_step >= plan_.total_steps; }
  [[nodiscard]] bool stopped_early() const { return should_stop_early(state_, arguments_); }
  /// --steps_this_run are over.
  [[nodiscard]] bool paused() const {
    return arguments_.steps_this_run > 0 && state_.global_step - first_step_ >= arguments_.steps_this_run && !finished();
  }
  [[nodiscard]] bool interrupted() const { return inputs_.stop && inputs_.stop->load(); }

  /// Loads the best model when asked to, writes the finished folder.
  TrainResult finish(Outcome outcome);
  /// Saves a checkpoint unless the one of this step is there.
  TrainResult interrupt();

 private:
  void prepare_model();
  void resume();
  void banner() const;
  void log_step();
  void evaluate();
  void save();
  void record(Record record);
  /// Throws Error(invalid_argument) naming step, epoch and rows when the number is not finite.
  void need_finite(double value, std::string_view what) const;
  [[nodiscard]] bool due(Strategy strategy, int64_t every) const;
  [[nodiscard]] double epoch() const { return static_cast<double>(state_.global_step) / static_cast<double>(plan_.steps_per_epoch); }
  [[nodiscard]] TrainResult result(Outcome outcome) const;
  [[nodiscard]] std::vector<std::pair<std::string, double>> summary() const;
  /// Bytes that training cannot do without.
  [[nodiscard]] double least_memory() const;

  TrainingArguments arguments_;
  TrainInputs inputs_;
  ThreadPool& threads_;
  std::optional<storage::FolderLock> output_lock_;  // two runs in one folder would mix their checkpoints
  runtime::Options options_;
  runtime::PrecisionChoice precision_;
  std::string isa_;
  std::unique_ptr<Objective> objective_;
  BestMetric metric_;
  Plan plan_;
  Identity identity_;
  TrainState state_;
  std::unique_ptr<OptimizerStep> optimizer_;
  std::unique_ptr<MetricsLog> log_;
  std::unique_ptr<EventWriter> events_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<Meter> meter_;
  std::unique_ptr<StepTrace> trace_;  // null without --trace

  double last_grad_norm_ = 0, last_learning_rate_ = 0;
  Scalars parts_since_log_;  // sums of what the loss is made of, since the last log line of this session
  int64_t parts_steps_ = 0;
  bool told_tokens_ = false;
  int64_t saved_step_ = -1;                                        // of the newest checkpoint of this session
  int64_t first_step_ = 0, first_tokens_ = 0, first_samples_ = 0;  // where this session began: rates count from there
  std::chrono::steady_clock::time_point start_;
  CheckpointWriter writer_;  // last: what it writes from outlives it
};

}  // namespace muster::train
