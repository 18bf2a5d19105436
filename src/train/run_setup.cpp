// How a run comes to be: checks, token ids, the compiled programs, and the state of an earlier session.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/log.h"
#include "runtime/backends.h"
#include "train/checkpoint.h"
#include "train/metrics.h"
#include "train/run.h"
#include "train/run_view.h"

namespace muster::train {
namespace {

runtime::Precision wanted_precision(const TrainingArguments& a) {
  return a.bf16 ? runtime::Precision::bf16 : a.fp32 ? runtime::Precision::f32 : runtime::Precision::automatic;
}

/// What an evaluation has beside its loss; of pre-training as pretraining.cpp names it.
Scalars evaluation_metrics(bool pretraining) {
  if (!pretraining) return scalars(Metrics());
  return {{"mlm_loss", 0}, {"perplexity", 0}, {"mlm_accuracy", 0}, {"nsp_loss", 0}, {"nsp_accuracy", 0}};
}

void check_metric(const BestMetric& metric, const Scalars& values) {
  std::string names = "eval_loss";
  bool known = metric.key == names;
  for (const auto& [name, value] : values) {
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
      start_(std::chrono::steady_clock::now()),
      writer_(threads) {
  validate(arguments_, inputs_.pretraining ? !inputs_.pretraining->eval_shards.files.empty() : inputs_.eval != nullptr);
  check_metric(metric_, evaluation_metrics(inputs_.pretraining.has_value()));
  objective_ = make_objective(arguments_, inputs_, threads_);
  output_lock_.emplace(prepare_output(arguments_));

  plan_ = plan_steps(arguments_, objective_->batches_per_epoch());

  prepare_model();
  resume();
  banner();
  log_ = std::make_unique<MetricsLog>(arguments_.output_dir, state_.log);
  events_ = std::make_unique<EventWriter>(arguments_.output_dir + "/runs");
  std::string text;
  for (const ArgumentInfo& info : argument_table()) text += fmt::format("| {} | {} |\n", info.name, argument_text(arguments_, info.name));
  std::map<std::string, std::string> hparams;
  for (const ArgumentInfo& info : argument_table())
    if (info.changes_result) hparams[std::string(info.name)] = argument_text(arguments_, info.name);
  events_->hparams(hparams);
  events_->text("args", "| argument | value |\n|---|---|\n" + text);
  events_->text("model_config", "    " + models::to_json(inputs_.config));
  progress_ = std::make_unique<Progress>(first_step_, plan_.total_steps);
  RunInfo info;
  info.task = inputs_.pretraining ? "masked_lm" : "classification";
  info.model = inputs_.model_name, info.data = inputs_.data_name, info.isa = isa_;
  info.precision = options_.precision == runtime::Precision::bf16 ? "bf16" : "f32";
  info.pid = ::getpid(), info.threads = threads_.threads();
  info.total_steps = plan_.total_steps, info.first_step = first_step_, info.steps_per_epoch = plan_.steps_per_epoch;
  for (const auto& [name, tensor] : inputs_.parameters) info.parameters += tensor.elements();
  info.started = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  write_run_info(arguments_.output_dir, info);
  if (!inputs_.trace.empty())
    trace_ = std::make_unique<StepTrace>(inputs_.trace, inputs_.trace_steps, objective_->session(), optimizer_->session());
  meter_ = std::make_unique<Meter>(threads_.threads(), arguments_.peak_tflops);
  start_ = std::chrono::steady_clock::now();
}

void Run::prepare_model() {
  models::ModelConfig config = inputs_.config;  // the dropouts of this run are not the model's to keep
  config.hidden_dropout = arguments_.hidden_dropout_prob.value_or(config.hidden_dropout);
  config.attention_dropout = arguments_.attention_probs_dropout_prob.value_or(config.attention_dropout);
  config.classifier_dropout = arguments_.classifier_dropout.value_or(config.classifier_dropout);

  const Isa isa = runtime::machine_isa();
  isa_ = name_of(isa);
  options_ = inputs_.options;
  options_.isa = isa;
  options_.precision = wanted_precision(arguments_);
  precision_ = runtime::resolve_precision(options_);
  options_.precision = precision_.precision;
  identity_ = identity_of(arguments_, inputs_.config, inputs_.parameters, objective_->samples(), objective_->data_fingerprint(),
                          precision_.precision == runtime::Precision::bf16 ? "bf16" : "f32", isa_);
  objective_->compile(config, options_);
  optimizer_ = std::make_unique<OptimizerStep>(objective_->parameters(), arguments_, options_, threads_);
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
  objective_->read_again();
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
  log_info("  {}", objective_->describe_data());
  log_info("  epochs = {}, batch size = {}, gradient accumulation = {}, in all {} {} a step", plan_.epochs, a.per_device_train_batch_size,
           a.gradient_accumulation_steps, a.per_device_train_batch_size * a.gradient_accumulation_steps,
           inputs_.pretraining ? "sequences" : "texts");
  log_info("  optimizer steps = {}{}, {} of them warm-up", plan_.total_steps, first_step_ > 0 ? fmt::format(" ({} done)", first_step_) : "",
           plan_.warmup_steps);
  const int64_t each = a.per_device_train_batch_size * a.gradient_accumulation_steps;
  if (a.optim == Optimizer::lamb) {
    // You et al. 2020, table 4, and NVIDIA's phase 1: 6e-3 for 65536 sequences, in proportion to the square root of the batch.
    const double fitting = 6e-3 * std::sqrt(static_cast<double>(each) / 65536.0);
    if (a.learning_rate > 4 * fitting)
      log_warning(
          "--learning_rate {:.3g} with LAMB is for {:.0f} sequences a step, this run has {}: raise --gradient_accumulation_steps, or take "
          "{:.1e}",
          a.learning_rate, 65536 * std::pow(a.learning_rate / 6e-3, 2), each, fitting);
  }
  log_info("  trainable parameters = {}", parameters);
  log_info("  memory of weights, gradients and moments = {:.3g} GB", least_memory() / 1e9);
  log_info("  precision = {}", precision_.reason);
  log_info("  threads = {}, instruction set = {}", threads_.threads(), isa_);
}

}  // namespace muster::train
