// How a run comes to be: checks, token ids, the compiled programs, and the state of an earlier session.
#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/log.h"
#include "runtime/backends.h"
#include "train/checkpoint.h"
#include "train/run.h"

namespace muster::train {
namespace {

runtime::Precision wanted_precision(const TrainingArguments& a) {
  return a.bf16 ? runtime::Precision::bf16 : a.fp32 ? runtime::Precision::f32 : runtime::Precision::automatic;
}

/// --max_seq_length, no longer than the position table and what the tokenizer's folder says.
int sequence_length(const TrainingArguments& a, const models::ModelConfig& config, const text::Tokenizer& tokenizer) {
  int64_t length =
      std::min(config.max_tokens(), static_cast<int64_t>(tokenizer.model_max_length().value_or(std::numeric_limits<int>::max())));
  if (a.max_seq_length > length) log_warning("--max_seq_length {} is more than the model takes: {} is used", a.max_seq_length, length);
  if (a.max_seq_length > 0) length = std::min(length, a.max_seq_length);
  const int least = tokenizer.special_tokens_added() + 1;
  if (length < least)
    throw Error(ErrorKind::usage, "--max_seq_length {}: needs at least {} for the special tokens and one more", length, least);
  return static_cast<int>(length);
}

void check_data(const TrainInputs& in) {
  MUSTER_ASSERT(in.tokenizer && in.train);
  if (in.train->size() == 0) throw Error(ErrorKind::invalid_argument, "the training data has no rows");
  if (!in.train->has_labels()) throw Error(ErrorKind::invalid_argument, "the training data has no labels");
  if (in.eval && !in.eval->has_labels()) throw Error(ErrorKind::invalid_argument, "the evaluation data has no labels");
  for (const data::Dataset* dataset : {in.train, in.eval}) {
    if (!dataset) continue;
    for (size_t row = 0; row < dataset->labels.size(); ++row)
      if (dataset->labels[row] >= in.config.num_labels())
        throw Error(ErrorKind::invalid_argument, "{}: label {}, but the model has {} labels", dataset->where(row), dataset->labels[row],
                    in.config.num_labels());
  }
  if (in.tokenizer->vocab_size() > in.config.vocab_size)
    throw Error(ErrorKind::invalid_argument, "the tokenizer has {} tokens, the model's embedding table {}: they do not belong together",
                in.tokenizer->vocab_size(), in.config.vocab_size);
}

void check_metric(const BestMetric& metric) {
  std::string names = "eval_loss";
  bool known = metric.key == names;
  for (const auto& [name, value] : scalars(Metrics())) {
    known |= metric.key == "eval_" + name;
    names += ", eval_" + name;
  }
  if (!known) throw Error(ErrorKind::usage, "--metric_for_best_model {}: an evaluation has {}", metric.key, names);
}

}  // namespace

Run::Run(TrainingArguments arguments, TrainInputs inputs, ThreadPool& threads)
    : arguments_(std::move(arguments)),
      inputs_(std::move(inputs)),
      threads_(threads),
      metric_(best_metric(arguments_)),
      start_(std::chrono::steady_clock::now()) {
  validate(arguments_, inputs_.eval != nullptr);
  check_data(inputs_);
  check_metric(metric_);
  class_weights_ = class_weights(arguments_, inputs_.train->labels, inputs_.config.num_labels());
  output_lock_.emplace(prepare_output(arguments_));

  const int length = sequence_length(arguments_, inputs_.config, *inputs_.tokenizer);
  train_ = data::tokenize(*inputs_.train, *inputs_.tokenizer, length, threads_);
  if (arguments_.eval_strategy != Strategy::no) eval_ = data::tokenize(*inputs_.eval, *inputs_.tokenizer, length, threads_);
  if (train_.truncated > 0)
    log_info("{} of {} training texts are longer than {} tokens and were cut", train_.truncated, train_.rows(), length);

  data::LoaderOptions loader;
  loader.batch_size = arguments_.per_device_train_batch_size;
  loader.group_by_length = arguments_.group_by_length;
  loader.drop_last = arguments_.dataloader_drop_last;
  loader.seed = static_cast<uint64_t>(arguments_.data_seed.value_or(arguments_.seed));
  loader_ = std::make_unique<data::Loader>(train_, loader);
  plan_ = plan_steps(arguments_, loader_->batches_per_epoch());

  prepare_model();
  resume();
  banner();
  log_ = std::make_unique<MetricsLog>(arguments_.output_dir, state_.log);
  events_ = std::make_unique<EventWriter>(arguments_.output_dir + "/runs");
  std::string text;
  for (const ArgumentInfo& info : argument_table()) text += fmt::format("| {} | {} |\n", info.name, argument_text(arguments_, info.name));
  events_->text("args", "| argument | value |\n|---|---|\n" + text);
  events_->text("model_config", "    " + models::to_json(inputs_.config));
  progress_ = std::make_unique<Progress>(first_step_, plan_.total_steps);
  start_ = std::chrono::steady_clock::now();
}

void Run::prepare_model() {
  models::ModelConfig config = inputs_.config;  // the dropouts of this run are not the model's to keep
  config.hidden_dropout = arguments_.hidden_dropout_prob.value_or(config.hidden_dropout);
  config.attention_dropout = arguments_.attention_probs_dropout_prob.value_or(config.attention_dropout);
  config.classifier_dropout = arguments_.classifier_dropout.value_or(config.classifier_dropout);

  const Isa isa = runtime::machine_isa();
  isa_ = name_of(isa);
  precision_ = runtime::resolve_precision(wanted_precision(arguments_), isa);
  options_ = inputs_.options;
  options_.precision = precision_.precision;
  options_.isa = isa;
  identity_ = identity_of(arguments_, inputs_.config, inputs_.parameters, train_,
                          precision_.precision == runtime::Precision::bf16 ? "bf16" : "f32", isa_);
  used_rows_ = std::make_unique<UsedRows>(train_, config, inputs_.parameters);
  task_ = std::make_unique<ClassificationTask>(used_rows_->config(), used_rows_->parameters(), arguments_.label_smoothing_factor, options_,
                                               threads_);
  optimizer_ = std::make_unique<AdamW>(used_rows_->parameters(), arguments_, options_, threads_);
  if (arguments_.eval_strategy != Strategy::no) evaluator_ = std::make_unique<Evaluator>(config, inputs_.parameters, options_, threads_);
}

void Run::resume() {
  if (arguments_.resume_from_checkpoint.empty()) return;
  const auto found = find_checkpoint(arguments_.resume_from_checkpoint, arguments_.output_dir);
  if (!found) return;
  const std::vector<std::string> different = differences(found->identity, identity_);
  if (!different.empty()) {
    std::string list;
    for (const auto& line : different) list += (list.empty() ? "" : "; ") + line;
    throw Error(ErrorKind::invalid_argument,
                "{} belongs to another run: {}; give the same arguments, model and data, or start anew in another --output_dir",
                found->folder, list);
  }
  const auto isa = found->identity.find("instruction set");
  if (isa != found->identity.end() && isa->second != isa_)
    log_warning("{} was written on a machine with {}, this one has {}: the run goes on, but not bit for bit as it would have there",
                found->folder, isa->second, isa_);
  load_weights(found->folder, inputs_.config, inputs_.parameters);
  load_moments(found->folder, optimizer_->first_moments(), optimizer_->second_moments());
  used_rows_->read_again();
  task_->parameters_changed();
  if (evaluator_) evaluator_->parameters_changed();
  state_ = found->state;
  saved_step_ = first_step_ = state_.global_step;
  first_tokens_ = state_.tokens_seen;
  first_samples_ = state_.samples_seen;
  log_info("going on from {}", found->folder);
}

void Run::banner() const {
  int64_t parameters = 0;
  for (const auto& [name, tensor] : inputs_.parameters) parameters += tensor.elements();
  const TrainingArguments& a = arguments_;
  log_info("***** training *****");
  log_info("  examples = {}{}", train_.rows(), inputs_.eval ? fmt::format(", for evaluation = {}", inputs_.eval->size()) : "");
  log_info("  epochs = {}, batch size = {}, gradient accumulation = {}, in all {} texts a step", plan_.epochs,
           a.per_device_train_batch_size, a.gradient_accumulation_steps, a.per_device_train_batch_size * a.gradient_accumulation_steps);
  log_info("  optimizer steps = {}{}, {} of them warm-up", plan_.total_steps, first_step_ > 0 ? fmt::format(" ({} done)", first_step_) : "",
           plan_.warmup_steps);
  log_info("  trainable parameters = {}", parameters);
  log_info("  precision = {}", precision_.reason);
  log_info("  threads = {}, instruction set = {}", threads_.threads(), isa_);
}

}  // namespace muster::train
