// The learning rate as a pure function of the step, so that a resumed run needs no saved schedule. Formulas: Transformers optimization.py.
#pragma once
#include <cstdint>

#include "train/arguments.h"

namespace muster::train {

/// How the steps of a run follow from the data and the arguments.
struct Plan {
  int64_t batches_per_epoch = 0;
  int64_t steps_per_epoch = 0;  // the last window of an epoch may hold fewer batches than gradient_accumulation_steps
  int64_t total_steps = 0;
  int64_t epochs = 0;  // begun ones: 2.5 epochs are 3
  int64_t warmup_steps = 0;
};
/// Throws Error(usage) when there is no batch.
Plan plan_steps(const TrainingArguments& arguments, int64_t batches_per_epoch);

/// Rate of optimizer step `step`, counted from 0.
double learning_rate(const TrainingArguments& arguments, const Plan& plan, int64_t step);

}  // namespace muster::train
