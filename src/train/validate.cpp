// The checks of TrainingArguments that need more than one value's type, and what follows from several of them.
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "train/arguments.h"

namespace muster::train {
namespace {

void need(bool holds, std::string_view name, const std::string& value, std::string_view rule) {
  if (!holds) throw Error(ErrorKind::usage, "--{} {}: {}", name, value, rule);
}

void check_ranges(const TrainingArguments& a) {
  const auto check = [&](bool holds, std::string_view name, std::string_view rule) { need(holds, name, argument_text(a, name), rule); };
  const auto probability = [](const std::optional<double>& p) { return !p || (*p >= 0 && *p < 1); };
  constexpr int64_t kMaxBatch = 1 << 20;
  check(!a.output_dir.empty(), "output_dir", "must name a folder");
  check(a.max_steps > 0 || a.num_train_epochs > 0, "num_train_epochs", "must be above 0");
  check(a.num_train_epochs <= 1e6, "num_train_epochs", "must be at most 1000000");
  check(a.max_steps == -1 || a.max_steps > 0, "max_steps", "must be above 0, or -1 to go by num_train_epochs");
  check(a.per_device_train_batch_size >= 1 && a.per_device_train_batch_size <= kMaxBatch, "per_device_train_batch_size",
        "must be in 1..1048576");
  check(a.per_device_eval_batch_size >= 1 && a.per_device_eval_batch_size <= kMaxBatch, "per_device_eval_batch_size",
        "must be in 1..1048576");
  check(a.gradient_accumulation_steps >= 1 && a.gradient_accumulation_steps <= kMaxBatch, "gradient_accumulation_steps",
        "must be in 1..1048576");
  check(a.max_seq_length >= 0, "max_seq_length", "must be 0 or above");
  check(a.learning_rate >= 0, "learning_rate", "must be 0 or above");
  check(a.lr_end >= 0 && a.lr_end <= a.learning_rate, "lr_end", "must be between 0 and --learning_rate");
  check(a.lr_power > 0, "lr_power", "must be above 0");
  check(a.steps_this_run == -1 || a.steps_this_run > 0, "steps_this_run", "must be above 0, or -1 to go on to the end");
  check(a.warmup_steps >= 0, "warmup_steps", "must be 0 or above");
  check(a.warmup_ratio >= 0 && a.warmup_ratio <= 1, "warmup_ratio", "must be in 0..1");
  check(a.weight_decay >= 0, "weight_decay", "must be 0 or above");
  check(a.adam_beta1 >= 0 && a.adam_beta1 < 1, "adam_beta1", "must be in 0..1, 1 excluded");
  check(a.adam_beta2 >= 0 && a.adam_beta2 < 1, "adam_beta2", "must be in 0..1, 1 excluded");
  check(a.adam_epsilon >= 0, "adam_epsilon", "must be 0 or above");
  check(a.max_grad_norm >= 0, "max_grad_norm", "must be 0 or above");
  check(a.label_smoothing_factor >= 0 && a.label_smoothing_factor < 1, "label_smoothing_factor", "must be in 0..1, 1 excluded");
  check(probability(a.hidden_dropout_prob), "hidden_dropout_prob", "must be in 0..1, 1 excluded");
  check(probability(a.attention_probs_dropout_prob), "attention_probs_dropout_prob", "must be in 0..1, 1 excluded");
  check(probability(a.classifier_dropout), "classifier_dropout", "must be in 0..1, 1 excluded");
  check(a.seed >= 0, "seed", "must be 0 or above");
  check(!a.data_seed || *a.data_seed >= 0, "data_seed", "must be 0 or above");
  check(a.threads >= 0 && a.threads <= 4096, "threads", "must be in 0..4096");
  check(a.peak_tflops >= 0, "peak_tflops", "must be 0 or above");
  check(a.logging_steps >= 1, "logging_steps", "must be 1 or above");
  check(a.eval_steps >= 1, "eval_steps", "must be 1 or above");
  check(a.save_steps >= 1, "save_steps", "must be 1 or above");
  check(!a.save_total_limit || *a.save_total_limit >= 1, "save_total_limit", "must be 1 or above");
  check(a.early_stopping_patience >= 0, "early_stopping_patience", "must be 0 or above");
  check(a.early_stopping_threshold >= 0, "early_stopping_threshold", "must be 0 or above");
}

}  // namespace

void validate(const TrainingArguments& a, bool has_eval_data) {
  check_ranges(a);
  if (a.bf16 && a.fp32) throw Error(ErrorKind::usage, "--bf16 and --fp32 exclude each other");
  if (a.overwrite_output_dir && !a.resume_from_checkpoint.empty())
    throw Error(ErrorKind::usage, "--overwrite_output_dir and --resume_from_checkpoint exclude each other");
  if (a.eval_strategy != Strategy::no && !has_eval_data)
    throw Error(ErrorKind::usage, "--eval_strategy {}: the data has no evaluation split; give one or use --eval_strategy no",
                name_of(a.eval_strategy));
  if (a.eval_strategy == Strategy::no) {
    if (a.load_best_model_at_end) throw Error(ErrorKind::usage, "--load_best_model_at_end needs --eval_strategy epoch or steps");
    if (a.early_stopping_patience > 0) throw Error(ErrorKind::usage, "--early_stopping_patience needs --eval_strategy epoch or steps");
  }
  if (a.load_best_model_at_end) {
    const bool steps_fit = a.eval_strategy != Strategy::steps || a.save_steps % a.eval_steps == 0;
    if (a.save_strategy != a.eval_strategy || !steps_fit)
      throw Error(ErrorKind::usage, "--load_best_model_at_end needs a checkpoint only where there is an evaluation: --save_strategy {}{}",
                  name_of(a.eval_strategy),
                  a.eval_strategy == Strategy::steps ? fmt::format(" --save_steps a multiple of {}", a.eval_steps) : "");
  }
}

BestMetric best_metric(const TrainingArguments& a) {
  BestMetric best{a.metric_for_best_model.empty() ? "eval_loss" : a.metric_for_best_model, false};
  if (!best.key.starts_with("eval_")) best.key = "eval_" + best.key;
  // Scripts that average over the classes themselves log these names.
  if (best.key == "eval_f1" || best.key == "eval_recall" || best.key == "eval_precision") best.key += "_macro";
  best.greater_is_better = a.greater_is_better.value_or(!best.key.ends_with("loss") && best.key != "eval_perplexity");
  return best;
}

std::vector<double> class_weights(const TrainingArguments& a, const std::vector<int32_t>& labels, int64_t classes) {
  std::vector<double> weights;
  if (a.class_weights.empty()) return weights;
  if (a.class_weights == "balanced") {
    std::vector<int64_t> rows(static_cast<size_t>(classes));
    int64_t all = 0;
    for (const int32_t label : labels)
      if (label >= 0 && label < classes) ++rows[static_cast<size_t>(label)], ++all;
    for (const int64_t n : rows) weights.push_back(n == 0 ? 1.0 : static_cast<double>(all) / static_cast<double>(classes * n));
    return weights;
  }
  std::string_view rest = a.class_weights;
  while (true) {
    const size_t comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    double weight = 0;
    const auto [stop, code] = std::from_chars(item.data(), item.data() + item.size(), weight);
    need(!item.empty() && code == std::errc{} && stop == item.data() + item.size() && std::isfinite(weight) && weight >= 0, "class_weights",
         a.class_weights, "must be 'balanced' or numbers of 0 or above, separated by commas");
    weights.push_back(weight);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  need(static_cast<int64_t>(weights.size()) == classes, "class_weights", a.class_weights,
       fmt::format("must have one number for each of the {} classes", classes));
  return weights;
}

}  // namespace muster::train
