#include "train/arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <variant>

#include "core/error.h"

namespace muster::train {
namespace {

using A = TrainingArguments;
using Member = std::variant<int64_t A::*, double A::*, bool A::*, std::string A::*, std::optional<int64_t> A::*, std::optional<double> A::*,
                            std::optional<bool> A::*, SchedulerType A::*, Optimizer A::*, Strategy A::*>;

struct Row {
  std::string_view name;
  Member member;
  bool changes_result;
  std::string_view help;
};

// The one description of every argument.
const std::vector<Row>& rows() {
  static const std::vector<Row> table{
      {"output_dir", &A::output_dir, false, "where the model, checkpoints and logs are written"},
      {"overwrite_output_dir", &A::overwrite_output_dir, false, "replace an earlier run found in output_dir"},
      {"resume_from_checkpoint", &A::resume_from_checkpoint, false,
       "go on from a checkpoint folder, or from the newest whole one of output_dir (latest; auto: if there is one)"},
      {"ignore_mismatched_sizes", &A::ignore_mismatched_sizes, false,
       "initialise the head anew when the model's has another number of classes"},
      {"num_train_epochs", &A::num_train_epochs, true, "passes over the training data; may be a fraction"},
      {"max_steps", &A::max_steps, true, "number of optimizer steps; above 0 it overrides num_train_epochs"},
      {"steps_this_run", &A::steps_this_run, false, "stop after so many steps and save a checkpoint; -1: go on to the end of the schedule"},
      {"per_device_train_batch_size", &A::per_device_train_batch_size, true, "texts in a batch"},
      {"per_device_eval_batch_size", &A::per_device_eval_batch_size, false, "texts in a batch of an evaluation"},
      {"gradient_accumulation_steps", &A::gradient_accumulation_steps, true, "batches whose gradients are summed for one step"},
      {"group_by_length", &A::group_by_length, true, "put texts of about the same length into one batch"},
      {"dataloader_drop_last", &A::dataloader_drop_last, true, "leave out the last batch of an epoch when it is not full"},
      {"max_seq_length", &A::max_seq_length, true, "longest text in tokens, longer ones are cut; 0: as long as the model takes"},
      {"optim", &A::optim, true, "adamw, or lamb: a trust ratio for each tensor (large batches)"},
      {"learning_rate", &A::learning_rate, true, "highest learning rate of the schedule"},
      {"lr_scheduler_type", &A::lr_scheduler_type, true, "how the learning rate changes over the steps"},
      {"lr_end", &A::lr_end, true, "polynomial schedule: rate at the end"},
      {"lr_power", &A::lr_power, true, "polynomial schedule: 1 is linear, 0.5 what LAMB's recipes take"},
      {"warmup_steps", &A::warmup_steps, true, "steps in which the learning rate rises from 0; below 1: a ratio of all steps"},
      {"warmup_ratio", &A::warmup_ratio, true, "the same as a ratio of all steps; warmup_steps goes first"},
      {"weight_decay", &A::weight_decay, true, "decay on every weight but biases and norms"},
      {"adam_beta1", &A::adam_beta1, true, "AdamW and LAMB: decay of the first moment"},
      {"adam_beta2", &A::adam_beta2, true, "AdamW and LAMB: decay of the second moment"},
      {"adam_epsilon", &A::adam_epsilon, true, "AdamW and LAMB: added to the denominator"},
      {"max_grad_norm", &A::max_grad_norm, true, "clip the norm of all gradients to this; 0: never"},
      {"label_smoothing_factor", &A::label_smoothing_factor, true, "share of the target spread evenly over the classes"},
      {"class_weights", &A::class_weights, true,
       "weight of each class in the loss: 'balanced', or numbers in the order of the labels: 1,2.5,1"},
      {"hidden_dropout_prob", &A::hidden_dropout_prob, true, "dropout of hidden states; default: the model's"},
      {"attention_probs_dropout_prob", &A::attention_probs_dropout_prob, true, "dropout of attention probabilities; default: the model's"},
      {"classifier_dropout", &A::classifier_dropout, true, "dropout of the head; default: the model's"},
      {"seed", &A::seed, true, "of the new head, dropout and the order of the data"},
      {"data_seed", &A::data_seed, true, "of the order of the data; default: seed"},
      {"bf16", &A::bf16, false, "multiply in bf16, keep f32 weights"},
      {"fp32", &A::fp32, false, "multiply in f32"},
      {"threads", &A::threads, false, "threads to compute with; 0: every core. Results do not depend on it"},
      {"peak_tflops", &A::peak_tflops, false, "what the machine could do in this precision: logs model flops utilisation (mfu); 0: not"},
      {"logging_steps", &A::logging_steps, false, "steps between two log lines (500 in Transformers)"},
      {"eval_strategy", &A::eval_strategy, false, "when to evaluate"},
      {"eval_steps", &A::eval_steps, false, "steps between two evaluations"},
      {"save_strategy", &A::save_strategy, false, "when to write a checkpoint"},
      {"save_steps", &A::save_steps, false, "steps between two checkpoints"},
      {"save_total_limit", &A::save_total_limit, false, "checkpoints to keep: the newest, and always the best; default: all"},
      {"load_best_model_at_end", &A::load_best_model_at_end, false, "the model of the best evaluation is the result, not the last one"},
      {"metric_for_best_model", &A::metric_for_best_model, false,
       "what makes an evaluation the best: loss, accuracy, f1_macro, ...; default: loss"},
      {"greater_is_better", &A::greater_is_better, false, "whether more of that metric is better; default: false for loss, else true"},
      {"early_stopping_patience", &A::early_stopping_patience, false, "stop after so many evaluations without a better one; 0: never"},
      {"early_stopping_threshold", &A::early_stopping_threshold, false,
       "how much better an evaluation must be to count for early stopping"},
  };
  return table;
}

const std::vector<std::string>& choices_of(const SchedulerType*) {
  static const std::vector<std::string> names{"linear", "cosine", "polynomial", "constant", "constant_with_warmup"};
  return names;
}
const std::vector<std::string>& choices_of(const Optimizer*) {
  static const std::vector<std::string> names{"adamw", "lamb"};
  return names;
}
const std::vector<std::string>& choices_of(const Strategy*) {
  static const std::vector<std::string> names{"no", "epoch", "steps"};
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& n : names) text += (text.empty() ? "" : ", ") + n;
  return text;
}

template <typename T>
T parse_number(std::string_view name, std::string_view value, std::string_view what) {
  T number{};
  const auto [stop, code] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (value.empty() || code != std::errc{} || stop != value.data() + value.size())
    throw Error(ErrorKind::usage, "--{} {}: not {}", name, value, what);
  return number;
}

void parse(std::string_view name, std::string_view value, int64_t& out) { out = parse_number<int64_t>(name, value, "a whole number"); }
void parse(std::string_view name, std::string_view value, double& out) {
  out = parse_number<double>(name, value, "a number");
  if (!std::isfinite(out)) throw Error(ErrorKind::usage, "--{} {}: must be finite", name, value);
}
void parse(std::string_view, std::string_view value, std::string& out) { out = value; }
void parse(std::string_view name, std::string_view value, bool& out) {
  std::string lower(value);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (lower == "true" || lower == "1" || lower == "yes")
    out = true;
  else if (lower == "false" || lower == "0" || lower == "no")
    out = false;
  else
    throw Error(ErrorKind::usage, "--{} {}: must be true or false", name, value);
}
template <typename T>
  requires std::is_enum_v<T>
void parse(std::string_view name, std::string_view value, T& out) {
  const auto& names = choices_of(static_cast<const T*>(nullptr));
  const auto found = std::find(names.begin(), names.end(), value);
  if (found == names.end()) throw Error(ErrorKind::usage, "--{} {}: must be one of {}", name, value, joined(names));
  out = static_cast<T>(found - names.begin());
}
template <typename T>
void parse(std::string_view name, std::string_view value, std::optional<T>& out) {
  if (value.empty()) {
    out.reset();
    return;
  }
  T inner{};
  parse(name, value, inner);
  out = inner;
}

std::string text_of(int64_t v) { return fmt::format("{}", v); }
std::string text_of(double v) { return fmt::format("{}", v); }
std::string text_of(bool v) { return v ? "true" : "false"; }
std::string text_of(const std::string& v) { return v; }
template <typename T>
  requires std::is_enum_v<T>
std::string text_of(T v) {
  return choices_of(static_cast<const T*>(nullptr)).at(static_cast<size_t>(v));
}
template <typename T>
std::string text_of(const std::optional<T>& v) {
  return v ? text_of(*v) : std::string();
}

using Kind = ArgumentInfo::Kind;
Kind kind_of(const int64_t*) { return Kind::integer; }
Kind kind_of(const double*) { return Kind::number; }
Kind kind_of(const bool*) { return Kind::boolean; }
Kind kind_of(const std::string*) { return Kind::text; }
template <typename T>
Kind kind_of(const std::optional<T>*) {
  return kind_of(static_cast<const T*>(nullptr));
}
template <typename T>
  requires std::is_enum_v<T>
Kind kind_of(const T*) {
  return Kind::choice;
}

const Row& row_of(std::string_view name) {
  std::string plain(name);
  std::replace(plain.begin(), plain.end(), '-', '_');
  if (plain == "evaluation_strategy") plain = "eval_strategy";  // its name in older Transformers
  for (const Row& row : rows())
    if (row.name == plain) return row;
  throw Error(ErrorKind::usage, "unknown training argument '{}'", name);
}

std::vector<ArgumentInfo> make_table() {
  const TrainingArguments defaults;
  std::vector<ArgumentInfo> table;
  for (const Row& row : rows()) {
    ArgumentInfo info{std::string(row.name), Kind::text, {}, {}, std::string(row.help), row.changes_result};
    std::visit(
        [&](auto member) {
          const auto& value = defaults.*member;
          info.kind = kind_of(&value);
          info.default_text = text_of(value);
          if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(value)>>) info.choices = choices_of(&value);
        },
        row.member);
    table.push_back(std::move(info));
  }
  return table;
}

}  // namespace

const std::vector<ArgumentInfo>& argument_table() {
  static const std::vector<ArgumentInfo> table = make_table();
  return table;
}

void set_argument(TrainingArguments& arguments, std::string_view name, std::string_view value) {
  const Row& row = row_of(name);
  std::visit([&](auto member) { parse(row.name, value, arguments.*member); }, row.member);
}

std::string argument_text(const TrainingArguments& arguments, std::string_view name) {
  return std::visit([&](auto member) { return text_of(arguments.*member); }, row_of(name).member);
}

std::string_view name_of(SchedulerType type) { return choices_of(&type).at(static_cast<size_t>(type)); }
std::string_view name_of(Optimizer optimizer) { return choices_of(&optimizer).at(static_cast<size_t>(optimizer)); }
std::string_view name_of(Strategy strategy) { return choices_of(&strategy).at(static_cast<size_t>(strategy)); }

}  // namespace muster::train
