// The state of a run: what counts as best, when to stop early, and that saving it loses nothing.
#include "train/state.h"

#include <cmath>

#include "train/world.h"

namespace muster::train {
namespace {

TEST(State, json_keeps_every_bit) {
  TrainState s;
  s.global_step = 123, s.tokens_seen = 1LL << 40, s.samples_seen = 77, s.loss_sum = 0.1 + 0.2, s.loss_since_log = 1e-300,
  s.steps_since_log = 3;
  s.last_evaluation = 120, s.best_metric = 1.0 / 3, s.best_step = 60, s.evaluations_without_better = 2;
  s.log = {{50, 0.1, {{"loss", 2.0 / 3}, {"a", 5.0}}}, {60, 0.2, {{"eval_loss", std::nan("")}}}};
  const TrainState back = state_from_json(to_json(s), "x");
  EXPECT_EQ(to_json(back), to_json(s));
  EXPECT_EQ(back.loss_sum, s.loss_sum);
  EXPECT_EQ(back.loss_since_log, s.loss_since_log);
  EXPECT_EQ(*back.best_metric, *s.best_metric);
  EXPECT_EQ(back.log[0].values, s.log[0].values);
  EXPECT_TRUE(std::isnan(back.log[1].values[0].second));
  for (const char* bad : {"", "{}", "[]", "{\"global_step\":\"x\"}"}) message_of(ErrorKind::corrupt, [&] { state_from_json(bad, "x"); });
}

/// evaluations_without_better after each value.
std::vector<int64_t> counts(const std::vector<double>& values, bool greater, double threshold, TrainState& s) {
  std::vector<int64_t> out;
  for (const double v : values) {
    ++s.global_step;
    note_evaluation(s, {"eval_x", greater}, v, threshold);
    out.push_back(s.evaluations_without_better);
  }
  return out;
}

TEST(State, early_stopping_counts_evaluations_without_better) {
  TrainState s;
  EXPECT_EQ(counts({0.5, 0.6, 0.6, 0.55, 0.7}, true, 0, s), (std::vector<int64_t>{0, 0, 1, 2, 0}));
  EXPECT_EQ(s.best_step, 5);
  TrainState loss;
  EXPECT_EQ(counts({1.0, 0.8, 0.9, 0.8}, false, 0, loss), (std::vector<int64_t>{0, 0, 1, 2}));
  EXPECT_EQ(loss.best_step, 2);  // the first of equal ones
  EXPECT_EQ(loss.best_checkpoint(), "checkpoint-2");
  TrainState slow;  // a little better is the best model, but does not count
  EXPECT_EQ(counts({1.0, 0.99, 0.98, 0.5}, false, 0.1, slow), (std::vector<int64_t>{0, 1, 2, 0}));
  EXPECT_EQ(slow.best_step, 4);
  TrainState broken;
  EXPECT_EQ(counts({std::nan(""), 1.0, std::nan("")}, false, 0, broken), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(broken.best_step, 2);
}

TEST(State, patience_ends_the_run) {
  TrainingArguments a;
  TrainState s;
  s.evaluations_without_better = 3;
  EXPECT_FALSE(should_stop_early(s, a));
  a.early_stopping_patience = 3;
  EXPECT_TRUE(should_stop_early(s, a));
  a.early_stopping_patience = 4;
  EXPECT_FALSE(should_stop_early(s, a));
}

TEST(State, trainer_state_has_the_fields_of_transformers) {
  TrainState s;
  s.global_step = 6, s.best_metric = 0.5, s.best_step = 4;
  s.log = {{4, 1.0, {{"eval_loss", 0.5}}}};
  TrainingArguments a;
  a.max_steps = 10;
  const std::string text = trainer_state_json(s, a, plan_steps(a, 4), "out/checkpoint-4");
  const auto j = nlohmann::json::parse(text);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(text.substr(0, 24), "{\n  \"best_global_step\": ");
  EXPECT_EQ(j["best_model_checkpoint"], "out/checkpoint-4");
  EXPECT_EQ(j["epoch"], 1.5);
  EXPECT_EQ(j["global_step"], 6);
  EXPECT_EQ(j["max_steps"], 10);
  EXPECT_EQ(j["log_history"][0]["eval_loss"], 0.5);
  for (const char* key :
       {"eval_steps", "is_hyper_param_search", "is_local_process_zero", "is_world_process_zero", "logging_steps", "num_input_tokens_seen",
        "num_train_epochs", "save_steps", "stateful_callbacks", "total_flos", "train_batch_size", "trial_name", "trial_params"})
    EXPECT_TRUE(j.contains(key)) << key;
}

}  // namespace
}  // namespace muster::train
