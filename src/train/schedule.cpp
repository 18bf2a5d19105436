#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace muster::train {

Plan plan_steps(const TrainingArguments& a, int64_t batches_per_epoch) {
  if (batches_per_epoch <= 0)
    throw Error(ErrorKind::usage,
                "the training data does not fill one batch of {}: lower --per_device_train_batch_size or leave out --dataloader_drop_last",
                a.per_device_train_batch_size);
  Plan plan;
  plan.batches_per_epoch = batches_per_epoch;
  plan.steps_per_epoch = (batches_per_epoch + a.gradient_accumulation_steps - 1) / a.gradient_accumulation_steps;
  if (a.max_steps > 0) {
    plan.total_steps = a.max_steps;
  } else {
    const double steps = std::ceil(a.num_train_epochs * static_cast<double>(plan.steps_per_epoch));
    if (steps > 1e12) throw Error(ErrorKind::usage, "--num_train_epochs {}: more than 10^12 steps", a.num_train_epochs);
    plan.total_steps = std::max<int64_t>(1, static_cast<int64_t>(steps));
  }
  plan.epochs = (plan.total_steps + plan.steps_per_epoch - 1) / plan.steps_per_epoch;
  const double ratio = a.warmup_steps > 0 && a.warmup_steps < 1 ? a.warmup_steps : a.warmup_ratio;
  plan.warmup_steps = a.warmup_steps >= 1 ? static_cast<int64_t>(a.warmup_steps)
                                          : static_cast<int64_t>(std::ceil(static_cast<double>(plan.total_steps) * ratio));
  return plan;
}

double learning_rate(const TrainingArguments& a, const Plan& plan, int64_t step) {
  const auto s = static_cast<double>(step);
  const auto warmup = static_cast<double>(plan.warmup_steps);
  const double rest = std::max(1.0, static_cast<double>(plan.total_steps) - warmup);
  if (a.lr_scheduler_type == SchedulerType::constant) return a.learning_rate;
  if (s < warmup) return a.learning_rate * (s / std::max(1.0, warmup));
  switch (a.lr_scheduler_type) {
    case SchedulerType::linear: return a.learning_rate * std::max(0.0, (static_cast<double>(plan.total_steps) - s) / rest);
    case SchedulerType::cosine: return a.learning_rate * std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * ((s - warmup) / rest))));
    case SchedulerType::polynomial: {
      const double left = std::clamp((static_cast<double>(plan.total_steps) - s) / rest, 0.0, 1.0);
      return (a.learning_rate - a.lr_end) * std::pow(left, a.lr_power) + a.lr_end;
    }
    case SchedulerType::constant:
    case SchedulerType::constant_with_warmup: break;
  }
  return a.learning_rate;
}

}  // namespace muster::train
