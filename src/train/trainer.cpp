#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "storage/file.h"
#include "train/checkpoint.h"
#include "train/gradient_norm.h"
#include "train/run.h"

namespace muster::train {

void Run::step() {
  const int64_t step = state_.global_step;
  using Clock = std::chrono::steady_clock;
  auto from = Clock::now();
  const auto lap = [&](Phase phase, Clock::time_point to) {
    meter_->add(phase, std::chrono::duration<double>(to - from).count());
    if (trace_) trace_->phase(phase, from, to);
    from = to;
  };
  if (trace_) trace_->begin_step(step + 1);
  const StepOutcome outcome = objective_->run(step);
  lap(Phase::data, from + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(outcome.data_seconds)));
  lap(Phase::compute, Clock::now());
  need_finite(outcome.loss, "loss");
  last_grad_norm_ = global_norm(objective_->gradients(), threads_);
  need_finite(last_grad_norm_, "gradient norm");
  lap(Phase::clip, Clock::now());
  writer_.release();
  lap(Phase::checkpoint, Clock::now());
  last_learning_rate_ = learning_rate(arguments_, plan_, step);
  optimizer_->update(objective_->gradients(), step + 1, last_learning_rate_, clip_factor(last_grad_norm_, arguments_.max_grad_norm));
  objective_->updated(last_learning_rate_, arguments_.weight_decay);
  lap(Phase::update, Clock::now());
  if (trace_) trace_->end_step();
  meter_->count(outcome);

  ++state_.global_step;
  state_.loss_sum += outcome.loss;
  state_.loss_since_log += outcome.loss;
  ++state_.steps_since_log;
  state_.tokens_seen += outcome.tokens;
  state_.samples_seen += outcome.samples;
  if (parts_since_log_.empty())
    parts_since_log_ = outcome.parts;
  else
    for (size_t i = 0; i < outcome.parts.size(); ++i) parts_since_log_[i].second += outcome.parts[i].second;
  ++parts_steps_;
  progress_->update(state_.global_step, outcome.loss, last_learning_rate_, outcome.tokens);
}

void Run::need_finite(double value, std::string_view what) const {
  if (std::isfinite(value)) return;
  throw Error(ErrorKind::invalid_argument,
              "the {} became {} at step {} (epoch {:.2f}) on the batch of rows {}; lower --learning_rate, or look at these rows", what,
              value, state_.global_step + 1, epoch(), objective_->last_rows());
}

bool Run::due(Strategy strategy, int64_t every) const {
  const int64_t step = state_.global_step;
  if (strategy == Strategy::no || step == 0) return false;
  return finished() || step % (strategy == Strategy::epoch ? plan_.steps_per_epoch : every) == 0;
}

void Run::after_step() {
  writer_.check();
  if (state_.steps_since_log > 0 && (state_.global_step % arguments_.logging_steps == 0 || finished())) log_step();
  // A stop signal leaves seconds, an evaluation may take minutes: it is made up for when the run is resumed.
  if (!interrupted() && state_.last_evaluation != state_.global_step && due(arguments_.eval_strategy, arguments_.eval_steps)) evaluate();
  if (!interrupted() && saved_step_ != state_.global_step && due(arguments_.save_strategy, arguments_.save_steps)) save();
}

void Run::log_step() {
  const double loss = state_.loss_since_log / static_cast<double>(state_.steps_since_log);
  state_.loss_since_log = 0;
  state_.steps_since_log = 0;
  Record r{state_.global_step, epoch(), {{"loss", loss}, {"grad_norm", last_grad_norm_}, {"learning_rate", last_learning_rate_}}};
  for (const auto& [name, sum] : parts_since_log_)
    r.values.emplace_back(name, sum / static_cast<double>(std::max<int64_t>(1, parts_steps_)));
  for (auto& value : meter_->take()) r.values.push_back(std::move(value));
  parts_since_log_.clear();
  parts_steps_ = 0;
  record(std::move(r));
}

void Run::evaluate() {
  const auto start = std::chrono::steady_clock::now();
  progress_->status("evaluating");
  writer_.release();  // an evaluation brings the whole model up to date
  const std::optional<Scalars> values = objective_->evaluate(inputs_.stop);
  if (!values) return;  // interrupted
  Record r{state_.global_step, epoch(), *values};
  const auto found = std::find_if(r.values.begin(), r.values.end(), [&](const auto& v) { return v.first == metric_.key; });
  if (found == r.values.end()) throw Error(ErrorKind::usage, "--metric_for_best_model {}: this evaluation has no such value", metric_.key);
  const double metric = found->second;
  note_evaluation(state_, metric_, metric, arguments_.early_stopping_threshold);
  record(std::move(r));
  // A checkpoint that an interrupted session had saved before this evaluation does not know of it.
  saved_step_ = -1;
  meter_->leave_out(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

void Run::save() {
  progress_->status("saving a checkpoint");
  const double stalled = writer_.stalled();
  writer_.release();
  objective_->write_back();
  writer_.start({inputs_.config, inputs_.parameters, optimizer_->first_moments(), optimizer_->second_moments(), inputs_.tokenizer, state_,
                 arguments_, plan_, identity_},
                arguments_.save_total_limit.value_or(0));
  saved_step_ = state_.global_step;
  meter_->add(Phase::checkpoint, writer_.stalled() - stalled);
}

void Run::record(Record r) {
  log_->append(r);
  events_->scalars(r);
  std::string line = record_line(r, plan_.total_steps);
  for (const auto& [name, value] : r.values)
    if (name == "step_ms" && !finished()) {
      const auto steps = static_cast<double>(plan_.total_steps - state_.global_step);
      line += fmt::format("  {} left", duration_text(steps * value / 1e3));
      if (inputs_.pretraining && !told_tokens_) {  // known from here on, near enough
        told_tokens_ = true;
        const double each = static_cast<double>(state_.tokens_seen) / static_cast<double>(state_.global_step);
        log_info("  tokens of the whole run = about {:.3g} ({:.0f} a step)", each * static_cast<double>(plan_.total_steps), each);
      }
    }
  progress_->line(line);
  if (inputs_.on_record) inputs_.on_record(r);
  state_.log.push_back(std::move(r));
}

std::vector<std::pair<std::string, double>> Run::summary() const {
  const double seconds = std::max(1e-9, std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  const auto rate = [&](int64_t now, int64_t before) { return static_cast<double>(now - before) / seconds; };
  return {{"train_runtime", seconds},
          {"train_samples_per_second", rate(state_.samples_seen, first_samples_)},
          {"train_steps_per_second", rate(state_.global_step, first_step_)},
          {"train_tokens_per_second", rate(state_.tokens_seen, first_tokens_)},
          {"train_checkpoint_stall", writer_.written() > 0 ? writer_.stalled() / static_cast<double>(writer_.written()) : 0.0},
          {"train_loss", state_.global_step > 0 ? state_.loss_sum / static_cast<double>(state_.global_step) : 0.0}};
}

TrainResult Run::result(Outcome outcome) const {
  TrainResult r;
  r.outcome = outcome;
  r.global_step = state_.global_step;
  r.epoch = epoch();
  r.summary = summary();
  r.train_loss = r.summary.back().second;
  r.best_metric = state_.best_metric;
  if (const std::string best = arguments_.output_dir + "/" + state_.best_checkpoint(); state_.best_step >= 0 && storage::is_folder(best))
    r.best_checkpoint = best;
  return r;
}

TrainResult Run::interrupt() {
  if (trace_) trace_->finish();
  if (saved_step_ != state_.global_step) save();
  writer_.wait();
  progress_->finish();
  TrainResult r = result(Outcome::interrupted);
  r.checkpoint = fmt::format("{}/checkpoint-{}", arguments_.output_dir, state_.global_step);
  return r;
}

double Run::least_memory() const {
  double elements = 0;
  for (const auto& [name, tensor] : objective_->parameters()) elements += static_cast<double>(tensor.elements());
  return elements * 4 * sizeof(float);  // a weight, its gradient and two moments
}

TrainResult Run::finish(Outcome outcome) {
  if (trace_) trace_->finish();
  writer_.wait();
  TrainResult r = result(outcome);
  record({state_.global_step, epoch(), r.summary});
  events_->finished();
  progress_->finish();
  const double least = least_memory(), peak = memory_use().peak;
  if (least >= 1e8)  // below, the program itself is most of it
    log_info("peak memory = {:.2f} GB, {:.2f} times the {:.2f} GB of weights, gradients and moments", peak / 1e9, peak / least,
             least / 1e9);
  objective_->write_back();
  int64_t kept_step = state_.global_step;
  if (arguments_.load_best_model_at_end && state_.best_step >= 0 && state_.best_step != state_.global_step) {
    if (r.best_checkpoint.empty())
      throw Error(ErrorKind::not_found, "the best model was that of step {}, but {}/{} is gone; the last one is in its newest checkpoint",
                  state_.best_step, arguments_.output_dir, state_.best_checkpoint());
    load_weights(r.best_checkpoint, inputs_.config, inputs_.parameters);
    kept_step = state_.best_step;
  }
  RunReport report{inputs_.model_name, inputs_.data_name, precision_.reason, isa_, threads_.threads(), objective_->samples(), 0, r.summary};
  for (const auto& [name, tensor] : inputs_.parameters) report.parameters += tensor.elements();
  for (const Record& line : state_.log)
    if (line.step == kept_step && !line.values.empty() && line.values.front().first == "eval_loss")
      report.summary.insert(report.summary.end(), line.values.begin(), line.values.end());
  write_finished(arguments_, inputs_.config, inputs_.parameters, inputs_.tokenizer, state_, plan_, report);
  return r;
}

TrainResult train(TrainingArguments arguments, TrainInputs inputs, ThreadPool& threads) {
  Run run(std::move(arguments), std::move(inputs), threads);
  run.after_step();  // of a resumed run: what its interruption left undone
  while (!run.finished() && !run.stopped_early() && !run.interrupted() && !run.paused()) {
    run.step();
    run.after_step();
  }
  if (run.interrupted() || run.paused()) return run.interrupt();
  return run.finish(run.finished() ? Outcome::finished : Outcome::stopped_early);
}

}  // namespace muster::train
