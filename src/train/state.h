// What a run knows besides its tensors: where it is, its sums, its best evaluation, its log. All of it is in every checkpoint, so that a
// resumed run goes on exactly. Files are written by checkpoint.cpp.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/arguments.h"
#include "train/record.h"
#include "train/schedule.h"

namespace muster::train {

struct TrainState {
  int64_t global_step = 0;  // optimizer steps done; epoch, position in it, schedule and dropout seeds follow from it
  int64_t tokens_seen = 0;
  int64_t samples_seen = 0;
  double loss_sum = 0;        // over all steps
  double loss_since_log = 0;  // and since the last log line
  int64_t steps_since_log = 0;
  int64_t last_evaluation = -1;  // step of it: tells an interrupted run whether one is due
  std::optional<double> best_metric;
  int64_t best_step = -1;
  int64_t evaluations_without_better = 0;
  std::vector<Record> log;

  /// "checkpoint-<best_step>": the checkpoint of the best evaluation if one was written there; empty before the first evaluation.
  [[nodiscard]] std::string best_checkpoint() const;
};

/// Takes an evaluation into account: the first of equal ones stays the best. Returns whether this one is the best so far.
/// Early stopping counts as Transformers' EarlyStoppingCallback does: an evaluation is better only when by more than `threshold`.
bool note_evaluation(TrainState& state, const BestMetric& metric, double value, double threshold);

/// Whether early_stopping_patience is used up.
bool should_stop_early(const TrainState& state, const TrainingArguments& arguments);

/// Exact: from_json(to_json(s)) == s. Throws Error(corrupt) with `where` on anything malformed.
std::string to_json(const TrainState& state);
TrainState state_from_json(std::string_view text, const std::string& where);

/// trainer_state.json with the fields of the Transformers Trainer, for tools that read it (indent 2, sorted keys).
/// best_model_checkpoint: its folder; empty when the best evaluation has none.
std::string trainer_state_json(const TrainState& state, const TrainingArguments& arguments, const Plan& plan,
                               const std::string& best_model_checkpoint);

}  // namespace muster::train
