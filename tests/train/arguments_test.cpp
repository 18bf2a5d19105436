// Training arguments: the table, parsing, validation; the schedule that follows from them.
#include "train/arguments.h"

#include <set>

#include "train/schedule.h"
#include "train/world.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

TEST(Arguments, every_argument_reads_back_what_it_prints) {
  const TrainingArguments defaults;
  std::set<std::string> names;
  for (const ArgumentInfo& info : argument_table()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.help.empty()) << info.name;
    EXPECT_EQ(info.kind == ArgumentInfo::Kind::choice, !info.choices.empty()) << info.name;
    TrainingArguments a;
    set_argument(a, info.name, info.default_text);
    EXPECT_EQ(argument_text(a, info.name), info.default_text);
  }
  EXPECT_EQ(argument_text(defaults, "learning_rate"), "5e-05");
}

TEST(Arguments, defaults_are_those_of_transformers) {
  const TrainingArguments a;
  EXPECT_EQ(a.per_device_train_batch_size, 8);
  EXPECT_EQ(a.num_train_epochs, 3);
  EXPECT_EQ(a.max_steps, -1);
  EXPECT_EQ(a.learning_rate, 5e-5);
  EXPECT_EQ(a.max_grad_norm, 1);
  EXPECT_EQ(a.adam_beta2, 0.999);
  EXPECT_EQ(a.seed, 42);
  EXPECT_EQ(a.save_steps, 500);
}

TEST(Arguments, values_are_read_by_their_kind) {
  TrainingArguments a;
  set_argument(a, "num-train-epochs", "2.5");
  set_argument(a, "lr_scheduler_type", "cosine");
  set_argument(a, "evaluation_strategy", "epoch");
  set_argument(a, "bf16", "True");
  set_argument(a, "save_total_limit", "2");
  set_argument(a, "hidden_dropout_prob", "0.2");
  EXPECT_EQ(a.num_train_epochs, 2.5);
  EXPECT_EQ(a.lr_scheduler_type, SchedulerType::cosine);
  EXPECT_EQ(a.eval_strategy, Strategy::epoch);
  EXPECT_TRUE(a.bf16);
  EXPECT_EQ(a.save_total_limit, 2);
  EXPECT_EQ(a.hidden_dropout_prob, 0.2);
  set_argument(a, "save_total_limit", "");
  EXPECT_EQ(a.save_total_limit, std::nullopt);
}

TEST(Arguments, wrong_values_say_what_is_allowed) {
  TrainingArguments a;
  const auto message = [&](const char* name, const char* value) {
    return message_of(ErrorKind::usage, [&] { set_argument(a, name, value); });
  };
  EXPECT_THAT(message("lr_scheduler_type", "quadratic"), HasSubstr("linear, cosine, polynomial, constant, constant_with_warmup"));
  EXPECT_THAT(message("max_steps", "1.5"), HasSubstr("--max_steps 1.5: not a whole number"));
  EXPECT_THAT(message("learning_rate", "1e-4x"), HasSubstr("not a number"));
  EXPECT_THAT(message("learning_rate", "nan"), HasSubstr("finite"));
  EXPECT_THAT(message("bf16", "maybe"), HasSubstr("true or false"));
  EXPECT_THAT(message("lerning_rate", "1"), HasSubstr("unknown training argument 'lerning_rate'"));
}

TEST(Arguments, combinations_that_cannot_be_are_refused) {
  const auto message = [](const std::vector<std::pair<const char*, const char*>>& values, bool eval = true) {
    TrainingArguments a;
    for (const auto& [name, value] : values) set_argument(a, name, value);
    return message_of(ErrorKind::usage, [&] { validate(a, eval); });
  };
  EXPECT_THAT(message({{"per_device_train_batch_size", "0"}}), HasSubstr("--per_device_train_batch_size 0"));
  EXPECT_THAT(message({{"num_train_epochs", "-1"}}), HasSubstr("above 0"));
  EXPECT_THAT(message({{"adam_beta1", "1"}}), HasSubstr("adam_beta1"));
  EXPECT_THAT(message({{"bf16", "1"}, {"fp32", "1"}}), HasSubstr("exclude"));
  EXPECT_THAT(message({{"eval_strategy", "epoch"}}, false), HasSubstr("no evaluation split"));
  EXPECT_THAT(message({{"load_best_model_at_end", "1"}}), HasSubstr("needs --eval_strategy"));
  EXPECT_THAT(message({{"early_stopping_patience", "2"}}), HasSubstr("needs --eval_strategy"));
  EXPECT_THAT(message({{"load_best_model_at_end", "1"}, {"eval_strategy", "epoch"}}), HasSubstr("--save_strategy epoch"));
  EXPECT_THAT(message({{"load_best_model_at_end", "1"}, {"eval_strategy", "steps"}, {"eval_steps", "30"}, {"save_steps", "100"}}),
              HasSubstr("a multiple of 30"));
  EXPECT_THAT(message({{"overwrite_output_dir", "1"}, {"resume_from_checkpoint", "latest"}}), HasSubstr("exclude"));
  validate(TrainingArguments(), false);
}

TEST(Arguments, the_best_metric_has_a_direction) {
  TrainingArguments a;
  EXPECT_EQ(best_metric(a).key, "eval_loss");
  EXPECT_FALSE(best_metric(a).greater_is_better);
  a.metric_for_best_model = "f1_macro";
  EXPECT_EQ(best_metric(a).key, "eval_f1_macro");
  EXPECT_TRUE(best_metric(a).greater_is_better);
  a.metric_for_best_model = "eval_recall";
  EXPECT_EQ(best_metric(a).key, "eval_recall_macro");
  a.greater_is_better = false;
  EXPECT_FALSE(best_metric(a).greater_is_better);
}

TEST(Arguments, class_weights_are_listed_or_balanced) {
  TrainingArguments a;
  const std::vector<int32_t> labels{0, 0, 0, 1, 2, 2, -1};
  EXPECT_TRUE(class_weights(a, labels, 3).empty());
  a.class_weights = "1, 2.5,0";
  EXPECT_EQ(class_weights(a, labels, 3), (std::vector<double>{1, 2.5, 0}));
  a.class_weights = "balanced";
  EXPECT_EQ(class_weights(a, labels, 4), (std::vector<double>{6 / 12.0, 6 / 4.0, 6 / 8.0, 1}));
  a.class_weights = "1,2";
  EXPECT_THAT(message_of(ErrorKind::usage, [&] { class_weights(a, labels, 3); }), HasSubstr("one number for each of the 3 classes"));
  a.class_weights = "1,,2";
  EXPECT_THAT(message_of(ErrorKind::usage, [&] { class_weights(a, labels, 3); }), HasSubstr("separated by commas"));
}

TEST(Schedule, rates_are_those_of_transformers) {
  for (const auto& c : golden("train/schedules.json")) {
    TrainingArguments a;
    set_argument(a, "lr_scheduler_type", c["type"].get<std::string>());
    a.learning_rate = c["learning_rate"];
    a.max_steps = c["total"];
    a.warmup_steps = c["warmup"];
    const Plan plan = plan_steps(a, 10);
    ASSERT_EQ(plan.warmup_steps, c["warmup"]);
    for (int64_t step = 0; step < a.max_steps; ++step)
      EXPECT_NEAR(learning_rate(a, plan, step), c["rates"][static_cast<size_t>(step)].get<double>(), 1e-18)
          << c["type"] << " step " << step;
  }
}

TEST(Schedule, steps_follow_from_batches_and_epochs) {
  TrainingArguments a;
  a.gradient_accumulation_steps = 4;
  a.num_train_epochs = 2.5;
  a.warmup_steps = 0.1;
  const Plan plan = plan_steps(a, 10);  // windows of 4, 4 and 2 batches
  EXPECT_EQ(plan.steps_per_epoch, 3);
  EXPECT_EQ(plan.total_steps, 8);
  EXPECT_EQ(plan.epochs, 3);
  EXPECT_EQ(plan.warmup_steps, 1);
  a.max_steps = 5;
  EXPECT_EQ(plan_steps(a, 10).total_steps, 5);
  EXPECT_EQ(plan_steps(a, 10).epochs, 2);
  EXPECT_THAT(message_of(ErrorKind::usage, [&] { plan_steps(a, 0); }), HasSubstr("does not fill one batch"));
}

}  // namespace
}  // namespace muster::train
