// Whole runs over the small world: learning, outputs, early stopping, the best model, what is refused.
#include "train/trainer.h"

#include <sys/resource.h>

#include <cmath>
#include <csignal>

#include "storage/file.h"
#include "train/checkpoint.h"
#include "train/world.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

double value_of(const TrainResult& r, const std::string& name) {
  for (const auto& [key, value] : r.summary)
    if (key == name) return value;
  ADD_FAILURE() << name;
  return 0;
}

TEST(Trainer, learns_what_can_be_learned) {
  const World world(192, 0.0);
  TrainingArguments a = world.arguments("out");
  a.num_train_epochs = 8;
  a.per_device_train_batch_size = 16;
  a.eval_strategy = Strategy::epoch;
  std::vector<Record> records;
  const TrainResult r = world.run(a, [&](TrainInputs& in) { in.on_record = [&](const Record& record) { records.push_back(record); }; });
  EXPECT_EQ(r.outcome, Outcome::finished);
  EXPECT_EQ(r.global_step, 96);
  EXPECT_EQ(r.epoch, 8);
  double accuracy = 0;
  for (const Record& record : records)
    for (const auto& [name, value] : record.values)
      if (name == "eval_accuracy") accuracy = value;
  EXPECT_GE(accuracy, 0.95);
  EXPECT_LT(r.train_loss, 0.7);
  EXPECT_GT(value_of(r, "train_tokens_per_second"), 0);
}

TEST(Trainer, leaves_a_whole_model_folder) {
  const World world;
  TrainingArguments a = world.arguments("out");
  a.eval_strategy = a.save_strategy = Strategy::epoch;
  world.run(a);
  const auto files = files_of(a.output_dir);
  for (const char* name :
       {"config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json", "README.md", "train_results.json", "trainer_state.json",
        "metrics.jsonl", "checkpoint-6/model.safetensors", "checkpoint-6/optimizer.safetensors", "checkpoint-12/muster_state.json",
        "checkpoint-12/trainer_state.json", "checkpoint-12/vocab.txt", "checkpoint-12/config.json"})
    EXPECT_TRUE(files.contains(name)) << name;
  EXPECT_EQ(files.at("model.safetensors"), files.at("checkpoint-12/model.safetensors"));
  EXPECT_EQ(std::count_if(files.begin(), files.end(), [](const auto& f) { return f.first.starts_with("runs/events.out.tfevents."); }), 1);

  const auto results = nlohmann::json::parse(files.at("train_results.json"));
  for (const char* key :
       {"epoch", "train_loss", "train_runtime", "train_samples", "train_samples_per_second", "eval_loss", "eval_accuracy", "best_metric"})
    EXPECT_TRUE(results.contains(key)) << key;
  EXPECT_EQ(results["arguments"]["learning_rate"], "0.002");
  EXPECT_THAT(files.at("README.md"), HasSubstr("base_model: \"tiny\""));
  EXPECT_THAT(files.at("README.md"), HasSubstr("| learning_rate | 0.002 |"));

  // loss at 3, 6, 9, 12; evaluation at 6 and 12; the summary
  const std::string& log = files.at("metrics.jsonl");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 7);

  models::LoadReport report;
  const auto config = models::read_config(a.output_dir);
  EXPECT_EQ(config.labels, world.config.labels);
  models::load_parameters(a.output_dir, config, {}, report);
  EXPECT_THAT(report.initialised, testing::IsEmpty());
}

TEST(Trainer, same_seed_same_bits_and_another_seed_others) {
  const World world;
  TrainingArguments a = world.arguments("a"), b = world.arguments("b"), c = world.arguments("c");
  c.seed = 43;
  world.run(a), world.run(b), world.run(c);
  EXPECT_EQ(files_of(a.output_dir).at("model.safetensors"), files_of(b.output_dir).at("model.safetensors"));
  EXPECT_NE(files_of(a.output_dir).at("model.safetensors"), files_of(c.output_dir).at("model.safetensors"));
}

TEST(Trainer, runs_in_bf16_too) {
  const World world;
  TrainingArguments a = world.arguments("f32"), b = world.arguments("bf16");
  b.fp32 = false, b.bf16 = true;
  const double f32 = world.run(a).train_loss, bf16 = world.run(b).train_loss;
  EXPECT_NEAR(f32, bf16, 0.05);
  EXPECT_NE(f32, bf16);
}

TEST(Trainer, smoothing_weights_groups_and_schedules_can_be_chosen) {
  const World world;
  TrainingArguments a = world.arguments("out");
  a.label_smoothing_factor = 0.1;
  a.class_weights = "balanced";
  a.group_by_length = true;
  a.lr_scheduler_type = SchedulerType::cosine;
  a.gradient_accumulation_steps = 4;
  a.dataloader_drop_last = true;
  a.hidden_dropout_prob = 0.3;
  a.max_seq_length = 8;
  const TrainResult r = world.run(a);
  EXPECT_EQ(r.global_step, 4);  // 6 batches an epoch: windows of 4 and 2
  // The dropout of the run is not the model's.
  EXPECT_EQ(models::read_config(a.output_dir).hidden_dropout, 0.1);
}

TEST(Trainer, the_best_model_is_the_result) {
  const World world;
  TrainingArguments a = world.arguments("out");
  a.num_train_epochs = 4;
  a.eval_strategy = a.save_strategy = Strategy::epoch;
  a.load_best_model_at_end = true;
  a.greater_is_better = true;  // of the loss: the best evaluation is then the first or an early one
  a.save_total_limit = 1;
  const TrainResult r = world.run(a);
  const auto files = files_of(a.output_dir);
  ASSERT_FALSE(r.best_checkpoint.empty());
  EXPECT_NE(r.best_checkpoint, a.output_dir + "/checkpoint-24");
  const std::string best = r.best_checkpoint.substr(r.best_checkpoint.rfind('/') + 1);
  EXPECT_EQ(files.at("model.safetensors"), files.at(best + "/model.safetensors"));
  EXPECT_NE(files.at("model.safetensors"), files.at("checkpoint-24/model.safetensors"));
  EXPECT_EQ(list_checkpoints(a.output_dir).size(), 2u);  // the best and the newest
  const auto results = nlohmann::json::parse(files.at("train_results.json"));
  EXPECT_EQ(results["eval_loss"], results["best_metric"]);
}

TEST(Trainer, stops_early_and_stays_stopped_when_resumed) {
  const World world;
  TrainingArguments a = world.arguments("out");
  a.num_train_epochs = 10;
  a.eval_strategy = a.save_strategy = Strategy::epoch;
  a.early_stopping_patience = 2;
  a.early_stopping_threshold = 100;  // nothing is that much better
  TrainResult r = world.run(a);
  EXPECT_EQ(r.outcome, Outcome::stopped_early);
  EXPECT_EQ(r.epoch, 3);  // the first evaluation sets the mark
  EXPECT_TRUE(storage::is_file(a.output_dir + "/model.safetensors"));
  a.resume_from_checkpoint = "latest";
  r = world.run(a);
  EXPECT_EQ(r.outcome, Outcome::stopped_early);
  EXPECT_EQ(r.global_step, 18);
}

TEST(Trainer, a_loss_that_is_not_a_number_names_step_and_rows) {
  const World world(20);
  TrainingArguments a = world.arguments("out");
  const auto poison = [](TrainInputs& in) { in.parameters.at("head.out.bias").as<float>()[0] = std::nanf(""); };
  const std::string message = message_of(ErrorKind::invalid_argument, [&] { world.run(a, poison); });
  EXPECT_THAT(message, HasSubstr("the loss became nan at step 1 (epoch 0.00)"));
  EXPECT_THAT(message, HasSubstr("train_text.txt:"));
  EXPECT_FALSE(storage::is_file(a.output_dir + "/model.safetensors"));
}

TEST(Trainer, a_learning_rate_that_explodes_is_noticed) {
  const World world;
  TrainingArguments a = world.arguments("out");
  a.learning_rate = 1e38;
  a.num_train_epochs = 5;
  EXPECT_THAT(message_of(ErrorKind::invalid_argument, [&] { world.run(a); }), HasSubstr("lower --learning_rate"));
}

TEST(Trainer, an_output_folder_of_another_run_is_kept) {
  const World world;
  TrainingArguments a = world.arguments("out");
  a.num_train_epochs = 1;
  a.save_strategy = Strategy::epoch;
  world.run(a);
  const auto before = files_of(a.output_dir);
  EXPECT_THAT(message_of(ErrorKind::invalid_argument, [&] { world.run(a); }), HasSubstr("already holds a finished model"));
  EXPECT_EQ(files_of(a.output_dir), before);
  storage::write_file_atomic(a.output_dir + "/notes.txt", "mine");
  a.overwrite_output_dir = true;
  a.max_steps = 2;
  world.run(a);
  const auto after = files_of(a.output_dir);
  EXPECT_TRUE(after.contains("notes.txt"));
  EXPECT_TRUE(after.contains("checkpoint-2/model.safetensors"));
  EXPECT_FALSE(after.contains("checkpoint-6/model.safetensors"));
}

TEST(Trainer, data_and_arguments_that_do_not_fit_are_refused) {
  const World world;
  const auto message = [&](ErrorKind kind, const std::function<void(TrainingArguments&, TrainInputs&)>& change) {
    TrainingArguments a = world.arguments("none");
    TrainInputs in = world.inputs();
    change(a, in);
    const std::string text = message_of(kind, [&] { train(a, std::move(in), world.threads); });
    EXPECT_FALSE(storage::is_folder(world.folder.path("none"))) << text;
    return text;
  };
  data::Dataset bad = world.train_data;
  bad.labels[5] = 3;
  EXPECT_THAT(message(ErrorKind::invalid_argument, [&](auto&, auto& in) { in.train = &bad; }),
              HasSubstr("train_text.txt:6: label 3, but the model has 3 labels"));
  const data::Dataset empty;
  EXPECT_THAT(message(ErrorKind::invalid_argument, [&](auto&, auto& in) { in.train = &empty; }), HasSubstr("no rows"));
  EXPECT_THAT(message(ErrorKind::usage, [](auto& a, auto&) { a.metric_for_best_model = "bleu"; }), HasSubstr("eval_f1_macro"));
  EXPECT_THAT(message(ErrorKind::usage, [](auto& a, auto&) { a.class_weights = "1,2"; }), HasSubstr("3 classes"));
  EXPECT_THAT(message(ErrorKind::invalid_argument, [](auto&, auto& in) { in.config.vocab_size = 5; }), HasSubstr("do not belong together"));
}

TEST(Trainer, a_full_disk_is_an_error_and_leaves_no_half_checkpoint) {
  const World world;
  TrainingArguments a = world.arguments("out");
  a.save_strategy = Strategy::steps;
  a.save_steps = 2;
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{20000, old.rlim_max};  // less than the weights
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    world.run(a, [](TrainInputs& in) { in.options.disabled = {"fuse"}; });  // no code, which goes through files too
  } catch (const Error& e) {
    message = e.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(message, HasSubstr("model.safetensors"));
  EXPECT_THAT(list_checkpoints(a.output_dir), testing::IsEmpty());
  for (const auto& [name, content] : files_of(a.output_dir)) EXPECT_THAT(name, testing::Not(HasSubstr(".tmp-")));
}

}  // namespace
}  // namespace muster::train
