// What a training run is told: names and defaults of the Transformers TrainingArguments where they exist there.
// One table (arguments.cpp) describes every argument; command-line flags, YAML keys, checkpoints and reports all come from it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::train {

enum class SchedulerType { linear, cosine, polynomial, constant, constant_with_warmup };
enum class Optimizer { adamw, lamb };
/// When to evaluate or to save.
enum class Strategy { no, epoch, steps };

struct TrainingArguments {
  std::string output_dir = "trainer_output";
  bool overwrite_output_dir = false;
  std::string
      resume_from_checkpoint;  // empty: start anew; "latest" or "true": the newest whole one of output_dir ("auto": if any); else a folder
  bool ignore_mismatched_sizes = false;

  double num_train_epochs = 3;
  int64_t max_steps = -1;       // above 0: overrides num_train_epochs
  int64_t steps_this_run = -1;  // above 0: stop after so many, with a checkpoint; the schedule is that of the whole run
  int64_t per_device_train_batch_size = 8;
  int64_t per_device_eval_batch_size = 8;
  int64_t gradient_accumulation_steps = 1;
  bool group_by_length = false;
  bool dataloader_drop_last = false;
  int64_t max_seq_length = 0;  // 0: as long as the model takes

  Optimizer optim = Optimizer::adamw;
  double learning_rate = 5e-5;
  double lr_end = 0;    // polynomial: rate at the end
  double lr_power = 1;  // polynomial: 1 is linear, 0.5 what LAMB's recipes take
  SchedulerType lr_scheduler_type = SchedulerType::linear;
  double warmup_steps = 0;  // below 1: a ratio of all steps, as in recent Transformers
  double warmup_ratio = 0;
  double weight_decay = 0;  // never on biases and norms
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_epsilon = 1e-8;
  double max_grad_norm = 1;  // 0: no clipping
  double label_smoothing_factor = 0;
  std::string class_weights;  // "balanced", or one number a class: "1,2.5,1"
  std::optional<double> hidden_dropout_prob;
  std::optional<double> attention_probs_dropout_prob;
  std::optional<double> classifier_dropout;

  int64_t seed = 42;
  std::optional<int64_t> data_seed;  // of the order of the data; default: seed
  bool bf16 = false;
  bool fp32 = false;    // neither: chosen for this machine
  int64_t threads = 0;  // 0: every core this process may use

  double peak_tflops = 0;  // of the machine; 0: not known, no mfu is logged
  int64_t logging_steps = 50;
  Strategy eval_strategy = Strategy::no;
  int64_t eval_steps = 500;
  Strategy save_strategy = Strategy::steps;
  int64_t save_steps = 500;
  std::optional<int64_t> save_total_limit;
  bool load_best_model_at_end = false;
  std::string metric_for_best_model;      // with or without "eval_"; default: loss
  std::optional<bool> greater_is_better;  // default: false for a loss, else true
  int64_t early_stopping_patience = 0;    // evaluations without a better one; 0: no early stopping
  double early_stopping_threshold = 0;
};

/// One argument as users see it. The texts live as long as the program.
struct ArgumentInfo {
  enum class Kind { integer, number, boolean, text, choice };
  std::string name;
  Kind kind = Kind::text;
  std::vector<std::string> choices;  // of a choice
  std::string default_text;          // empty: none
  std::string help;
  bool changes_result = false;  // a resumed run must have the same value as the interrupted one
};

/// Every argument, in the order of --help.
const std::vector<ArgumentInfo>& argument_table();

/// Sets one argument from text; '-' and '_' in the name are the same. A boolean takes true|false (yes|no, 1|0); empty clears an optional.
/// Throws Error(usage) naming the argument, the value and what is allowed.
void set_argument(TrainingArguments& arguments, std::string_view name, std::string_view value);

/// The value as text that set_argument reads back to the same value.
std::string argument_text(const TrainingArguments& arguments, std::string_view name);

/// Checks ranges and combinations. `has_eval_data`: an evaluation split is there. Throws Error(usage).
void validate(const TrainingArguments& arguments, bool has_eval_data);

/// metric_for_best_model as a key of an evaluation ("eval_loss") and whether more is better, defaults resolved.
struct BestMetric {
  std::string key;
  bool greater_is_better = false;
};
BestMetric best_metric(const TrainingArguments& arguments);

/// The weight of each class: empty when there are none given. "balanced" is rows / (classes * rows of the class), as scikit-learn has it;
/// a class without rows gets 1. Throws Error(usage) when the list has another length than `classes` or a number below 0.
std::vector<double> class_weights(const TrainingArguments& arguments, const std::vector<int32_t>& labels, int64_t classes);

std::string_view name_of(SchedulerType type);
std::string_view name_of(Optimizer optimizer);
std::string_view name_of(Strategy strategy);

}  // namespace muster::train
