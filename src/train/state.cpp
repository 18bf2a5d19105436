#include "train/state.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace muster::train {
namespace {

using nlohmann::json;

// A number that is not finite has no JSON form: null stands for NaN.
double number(const json& j) { return j.is_null() ? std::numeric_limits<double>::quiet_NaN() : j.get<double>(); }

json record_json(const Record& r) {
  json values = json::array();  // an array of pairs: the order of the names is kept
  for (const auto& [name, value] : r.values) values.push_back({name, value});
  return {{"step", r.step}, {"epoch", r.epoch}, {"values", values}};
}

Record record_of(const json& j) {
  Record r;
  r.step = j.at("step").get<int64_t>();
  r.epoch = number(j.at("epoch"));
  for (const json& pair : j.at("values")) r.values.emplace_back(pair.at(0).get<std::string>(), number(pair.at(1)));
  return r;
}

}  // namespace

std::string TrainState::best_checkpoint() const { return best_step < 0 ? std::string() : fmt::format("checkpoint-{}", best_step); }

bool note_evaluation(TrainState& state, const BestMetric& metric, double value, double threshold) {
  const auto better = [&](double a, double b) { return metric.greater_is_better ? a > b : a < b; };
  const bool first = !state.best_metric && std::isfinite(value);
  const bool best = first || (state.best_metric && better(value, *state.best_metric));
  const bool counts = first || (best && std::abs(value - *state.best_metric) > threshold);
  state.evaluations_without_better = counts ? 0 : state.evaluations_without_better + 1;
  state.last_evaluation = state.global_step;
  if (best) state.best_metric = value, state.best_step = state.global_step;
  return best;
}

bool should_stop_early(const TrainState& state, const TrainingArguments& arguments) {
  return arguments.early_stopping_patience > 0 && state.evaluations_without_better >= arguments.early_stopping_patience;
}

std::string to_json(const TrainState& s) {
  json log = json::array();
  for (const Record& r : s.log) log.push_back(record_json(r));
  const json j{{"global_step", s.global_step},
               {"tokens_seen", s.tokens_seen},
               {"samples_seen", s.samples_seen},
               {"loss_sum", s.loss_sum},
               {"loss_since_log", s.loss_since_log},
               {"steps_since_log", s.steps_since_log},
               {"last_evaluation", s.last_evaluation},
               {"best_metric", s.best_metric ? json(*s.best_metric) : json()},
               {"best_step", s.best_step},
               {"evaluations_without_better", s.evaluations_without_better},
               {"log", log}};
  return j.dump();
}

TrainState state_from_json(std::string_view text, const std::string& where) {
  try {
    const json j = json::parse(text);
    TrainState s;
    s.global_step = j.at("global_step").get<int64_t>();
    s.tokens_seen = j.at("tokens_seen").get<int64_t>();
    s.samples_seen = j.at("samples_seen").get<int64_t>();
    s.loss_sum = j.at("loss_sum").get<double>();
    s.loss_since_log = j.at("loss_since_log").get<double>();
    s.steps_since_log = j.at("steps_since_log").get<int64_t>();
    s.last_evaluation = j.at("last_evaluation").get<int64_t>();
    if (!j.at("best_metric").is_null()) s.best_metric = j.at("best_metric").get<double>();
    s.best_step = j.at("best_step").get<int64_t>();
    s.evaluations_without_better = j.at("evaluations_without_better").get<int64_t>();
    for (const json& r : j.at("log")) s.log.push_back(record_of(r));
    if (s.global_step < 0) throw Error(ErrorKind::corrupt, "{}: global_step {} is negative", where, s.global_step);
    return s;
  } catch (const json::exception& e) {
    throw Error(ErrorKind::corrupt, "{}: not the state of a run: {}", where, e.what());
  }
}

std::string trainer_state_json(const TrainState& s, const TrainingArguments& a, const Plan& plan,
                               const std::string& best_model_checkpoint) {
  json log = json::array();
  for (const Record& r : s.log) {
    json entry{{"step", r.step}, {"epoch", r.epoch}};
    for (const auto& [name, value] : r.values) entry[name] = value;
    log.push_back(entry);
  }
  const json j{{"best_global_step", s.best_step < 0 ? json() : json(s.best_step)},
               {"best_metric", s.best_metric ? json(*s.best_metric) : json()},
               {"best_model_checkpoint", best_model_checkpoint.empty() ? json() : json(best_model_checkpoint)},
               {"epoch", static_cast<double>(s.global_step) / static_cast<double>(plan.steps_per_epoch)},
               {"eval_steps", a.eval_steps},
               {"global_step", s.global_step},
               {"is_hyper_param_search", false},
               {"is_local_process_zero", true},
               {"is_world_process_zero", true},
               {"log_history", log},
               {"logging_steps", a.logging_steps},
               {"max_steps", plan.total_steps},
               {"num_input_tokens_seen", s.tokens_seen},
               {"num_train_epochs", plan.epochs},
               {"save_steps", a.save_steps},
               {"stateful_callbacks", json::object()},
               {"total_flos", 0.0},
               {"train_batch_size", a.per_device_train_batch_size},
               {"trial_name", nullptr},
               {"trial_params", nullptr}};
  return j.dump(2) + "\n";
}

}  // namespace muster::train
