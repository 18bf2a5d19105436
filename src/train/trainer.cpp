#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "storage/file.h"
#include "train/checkpoint.h"
#include "train/gradient_norm.h"
#include "train/run.h"

namespace muster::train {

void Run::step() {
  const int64_t step = state_.global_step;
  const Window window = make_window(*loader_, used_rows_->config(), class_weights_, step, arguments_.gradient_accumulation_steps);
  const double loss = task_->run(window, static_cast<uint64_t>(arguments_.seed), step);
  need_finite(loss, "loss", window);
  last_grad_norm_ = global_norm(task_->gradients(), threads_);
  need_finite(last_grad_norm_, "gradient norm", window);
  last_learning_rate_ = learning_rate(arguments_, plan_, step);
  optimizer_->update(task_->gradients(), step + 1, last_learning_rate_, clip_factor(last_grad_norm_, arguments_.max_grad_norm));
  used_rows_->count_step(last_learning_rate_, arguments_.weight_decay);
  task_->parameters_changed();

  ++state_.global_step;
  state_.loss_sum += loss;
  state_.loss_since_log += loss;
  ++state_.steps_since_log;
  state_.tokens_seen += window.tokens;
  state_.samples_seen += static_cast<int64_t>(window.rows.size());
  progress_->update(state_.global_step, loss, last_learning_rate_, window.tokens);
}

void Run::need_finite(double value, std::string_view what, const Window& window) const {
  if (std::isfinite(value)) return;
  constexpr size_t kShown = 16;
  std::string rows;
  for (size_t i = 0; i < std::min(kShown, window.rows.size()); ++i)
    rows += (i ? ", " : "") + inputs_.train->where(static_cast<size_t>(window.rows[i]));
  if (window.rows.size() > kShown) rows += fmt::format(" and {} more", window.rows.size() - kShown);
  throw Error(ErrorKind::invalid_argument,
              "the {} became {} at step {} (epoch {:.2f}) on the batch of rows {}; lower --learning_rate, or look at these rows", what,
              value, state_.global_step + 1, epoch(), rows);
}

bool Run::due(Strategy strategy, int64_t every) const {
  const int64_t step = state_.global_step;
  if (strategy == Strategy::no || step == 0) return false;
  return finished() || step % (strategy == Strategy::epoch ? plan_.steps_per_epoch : every) == 0;
}

void Run::after_step() {
  if (state_.steps_since_log > 0 && (state_.global_step % arguments_.logging_steps == 0 || finished())) log_step();
  // A stop signal leaves seconds, an evaluation may take minutes: it is made up for when the run is resumed.
  if (!interrupted() && state_.last_evaluation != state_.global_step && due(arguments_.eval_strategy, arguments_.eval_steps)) evaluate();
  if (!interrupted() && saved_step_ != state_.global_step && due(arguments_.save_strategy, arguments_.save_steps)) save();
}

void Run::log_step() {
  const double loss = state_.loss_since_log / static_cast<double>(state_.steps_since_log);
  state_.loss_since_log = 0;
  state_.steps_since_log = 0;
  record({state_.global_step, epoch(), {{"loss", loss}, {"grad_norm", last_grad_norm_}, {"learning_rate", last_learning_rate_}}});
}

void Run::evaluate() {
  progress_->status("evaluating");
  used_rows_->write_back(threads_);
  evaluator_->parameters_changed();
  const auto evaluation = evaluator_->run(eval_, arguments_.per_device_eval_batch_size, inputs_.stop);
  if (!evaluation) return;  // interrupted
  Record r{state_.global_step, epoch(), {{"eval_loss", evaluation->loss}}};
  for (const auto& [name, value] : scalars(evaluation->metrics)) r.values.emplace_back("eval_" + name, value);
  const double metric = std::find_if(r.values.begin(), r.values.end(), [&](const auto& v) { return v.first == metric_.key; })->second;
  const double seconds = std::max(evaluation->seconds, 1e-9);
  r.values.emplace_back("eval_runtime", evaluation->seconds);
  r.values.emplace_back("eval_samples_per_second", static_cast<double>(evaluation->rows) / seconds);
  r.values.emplace_back("eval_steps_per_second", static_cast<double>(evaluation->batches) / seconds);
  note_evaluation(state_, metric_, metric, arguments_.early_stopping_threshold);
  record(std::move(r));
  // A checkpoint that an interrupted session had saved before this evaluation does not know of it.
  saved_step_ = -1;
}

void Run::save() {
  progress_->status("saving a checkpoint");
  used_rows_->write_back(threads_);
  save_checkpoint({inputs_.config, inputs_.parameters, optimizer_->first_moments(), optimizer_->second_moments(), inputs_.tokenizer, state_,
                   arguments_, plan_, identity_});
  saved_step_ = state_.global_step;
  if (arguments_.save_total_limit) rotate_checkpoints(arguments_.output_dir, *arguments_.save_total_limit, state_.best_checkpoint());
}

void Run::record(Record r) {
  log_->append(r);
  events_->scalars(r);
  progress_->line(record_line(r, plan_.total_steps));
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
  if (saved_step_ != state_.global_step) save();
  progress_->finish();
  TrainResult r = result(Outcome::interrupted);
  r.checkpoint = fmt::format("{}/checkpoint-{}", arguments_.output_dir, state_.global_step);
  return r;
}

TrainResult Run::finish(Outcome outcome) {
  TrainResult r = result(outcome);
  record({state_.global_step, epoch(), r.summary});
  progress_->finish();
  used_rows_->write_back(threads_);
  int64_t kept_step = state_.global_step;
  if (arguments_.load_best_model_at_end && state_.best_step >= 0 && state_.best_step != state_.global_step) {
    if (r.best_checkpoint.empty())
      throw Error(ErrorKind::not_found, "the best model was that of step {}, but {}/{} is gone; the last one is in its newest checkpoint",
                  state_.best_step, arguments_.output_dir, state_.best_checkpoint());
    load_weights(r.best_checkpoint, inputs_.config, inputs_.parameters);
    kept_step = state_.best_step;
  }
  RunReport report{inputs_.model_name, inputs_.data_name, precision_.reason, isa_, threads_.threads(), train_.rows(), 0, r.summary};
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
  while (!run.finished() && !run.stopped_early() && !run.interrupted()) {
    run.step();
    run.after_step();
  }
  if (run.interrupted()) return run.interrupt();
  return run.finish(run.finished() ? Outcome::finished : Outcome::stopped_early);
}

}  // namespace muster::train
