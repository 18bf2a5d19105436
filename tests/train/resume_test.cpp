// Checkpoints: a resumed run is the uninterrupted one bit for bit, a damaged checkpoint is passed over, a foreign one refused.
#include <fstream>
#include <set>

#include "storage/file.h"
#include "train/checkpoint.h"
#include "train/meter.h"
#include "train/world.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

/// The records without what depends on the clock.
std::vector<std::string> steady(const std::string& jsonl) {
  std::vector<std::string> lines;
  std::istringstream in(jsonl);
  for (std::string line; std::getline(in, line);) {
    auto j = nlohmann::ordered_json::parse(line);
    for (const char* key : {"eval_runtime", "eval_samples_per_second", "eval_steps_per_second", "train_runtime", "train_samples_per_second",
                            "train_steps_per_second", "train_tokens_per_second", "train_checkpoint_stall"})
      j.erase(key);
    for (auto value = j.begin(); value != j.end();) value = is_meter_value(value.key()) ? j.erase(value) : std::next(value);
    lines.push_back(j.dump());
  }
  return lines;
}

/// A run that uses everything that could go out of step: dropout, accumulation with a short last window, evaluations, best model.
TrainingArguments rich_arguments(const World& world, const std::string& output) {
  TrainingArguments a = world.arguments(output);
  a.gradient_accumulation_steps = 2;  // 44 rows: 6 batches, the last of 4 rows; 3 steps an epoch
  a.num_train_epochs = 3;
  a.eval_strategy = Strategy::steps;
  a.eval_steps = 2;
  a.save_strategy = Strategy::steps;
  a.save_steps = 2;
  a.load_best_model_at_end = true;
  a.logging_steps = 3;
  a.group_by_length = true;
  return a;
}

/// Trains until `step` is done, then raises the stop flag.
TrainResult run_until(const World& world, const TrainingArguments& a, int64_t step) {
  std::atomic<bool> stop{false};
  // There is a record only every few steps; so the run is stopped by its argument: a log line each step.
  TrainingArguments each = a;
  each.logging_steps = 1;
  return world.run(each, [&](TrainInputs& in) {
    in.stop = &stop;
    in.on_record = [&stop, step](const Record& r) {
      if (r.step >= step) stop = true;
    };
  });
}

class ResumeAt : public testing::TestWithParam<int> {};

TEST_P(ResumeAt, is_the_uninterrupted_run) {
  const World world(44);
  TrainingArguments whole = rich_arguments(world, "whole"), cut = rich_arguments(world, "cut");
  whole.logging_steps = cut.logging_steps = 1;
  world.run(whole);
  const TrainResult first = run_until(world, cut, GetParam());
  ASSERT_EQ(first.outcome, Outcome::interrupted);
  ASSERT_EQ(first.global_step, GetParam());
  EXPECT_FALSE(storage::is_file(cut.output_dir + "/model.safetensors"));
  cut.resume_from_checkpoint = "latest";
  const TrainResult second = world.run(cut);
  EXPECT_EQ(second.outcome, Outcome::finished);

  auto a = files_of(whole.output_dir), b = files_of(cut.output_dir);
  EXPECT_EQ(a.at("model.safetensors"), b.at("model.safetensors"));
  EXPECT_EQ(a.at("checkpoint-9/optimizer.safetensors"), b.at("checkpoint-9/optimizer.safetensors"));
  EXPECT_EQ(a.at("checkpoint-9/model.safetensors"), b.at("checkpoint-9/model.safetensors"));
  EXPECT_EQ(steady(a.at("metrics.jsonl")), steady(b.at("metrics.jsonl")));
}

INSTANTIATE_TEST_SUITE_P(train, ResumeAt, testing::Range(1, 9));

TEST(Resume, survives_interruption_after_interruption) {
  const World world(44);
  TrainingArguments whole = rich_arguments(world, "whole"), cut = rich_arguments(world, "cut");
  whole.logging_steps = cut.logging_steps = 1;
  world.run(whole);
  for (int64_t step = 1; step < 9; ++step) {
    ASSERT_EQ(run_until(world, cut, step).global_step, step);
    cut.resume_from_checkpoint = "latest";
  }
  world.run(cut);
  EXPECT_EQ(files_of(whole.output_dir).at("model.safetensors"), files_of(cut.output_dir).at("model.safetensors"));
  EXPECT_EQ(steady(files_of(whole.output_dir).at("metrics.jsonl")), steady(files_of(cut.output_dir).at("metrics.jsonl")));
}

TEST(Resume, from_an_older_checkpoint_drops_later_log_lines) {
  const World world(44);
  TrainingArguments a = rich_arguments(world, "out");
  world.run(a);
  const auto before = files_of(a.output_dir);
  a.resume_from_checkpoint = a.output_dir + "/checkpoint-4";
  world.run(a);
  const auto after = files_of(a.output_dir);
  EXPECT_EQ(before.at("model.safetensors"), after.at("model.safetensors"));
  EXPECT_EQ(steady(before.at("metrics.jsonl")), steady(after.at("metrics.jsonl")));
}

TEST(Resume, of_a_finished_run_trains_nothing_and_writes_the_same) {
  const World world(44);
  TrainingArguments a = rich_arguments(world, "out");
  world.run(a);
  const std::string model = files_of(a.output_dir).at("model.safetensors");
  a.resume_from_checkpoint = "true";
  EXPECT_EQ(world.run(a).outcome, Outcome::finished);
  EXPECT_EQ(files_of(a.output_dir).at("model.safetensors"), model);
}

/// A run interrupted at step 5, with checkpoints 2, 4 and 5.
struct Interrupted {
  Interrupted() {
    arguments.logging_steps = 1;
    run_until(world, arguments, 5);
    arguments.resume_from_checkpoint = "latest";
  }
  [[nodiscard]] std::string path(const std::string& name) const { return arguments.output_dir + "/" + name; }
  World world{44};
  TrainingArguments arguments = rich_arguments(world, "out");
};

void flip_byte(const std::string& path, int64_t at_from_end) {
  std::string bytes = storage::read_file(path);
  bytes[bytes.size() - static_cast<size_t>(at_from_end)] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
}
void truncate_file(const std::string& path) {
  const std::string bytes = storage::read_file(path);
  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
}

TEST(Checkpoint, damage_of_any_file_is_found) {
  const Interrupted run;
  const std::string folder = run.path("checkpoint-5");
  EXPECT_EQ(open_checkpoint(folder).state.global_step, 5);
  for (const auto& [name, content] : files_of(folder)) {
    const std::string path = folder + "/" + name;
    for (const auto& damage : std::vector<std::function<void()>>{[&] { flip_byte(path, 3); }, [&] { truncate_file(path); },
                                                                 [&] { storage::remove_tree(path); }}) {
      damage();
      std::string message;
      try {
        open_checkpoint(folder);
      } catch (const Error& e) {
        message = e.what();
      }
      EXPECT_THAT(message, HasSubstr(name));
      std::ofstream(path, std::ios::binary) << content;
    }
  }
  EXPECT_EQ(open_checkpoint(folder).state.global_step, 5);
}

TEST(Checkpoint, a_changed_number_in_the_state_is_found) {
  const Interrupted run;
  const std::string path = run.path("checkpoint-5/muster_state.json");
  auto j = nlohmann::json::parse(storage::read_file(path));
  j["state"]["global_step"] = 4;
  std::ofstream(path) << j.dump();
  EXPECT_THAT(message_of(ErrorKind::corrupt, [&] { open_checkpoint(run.path("checkpoint-5")); }), HasSubstr("altered"));
}

TEST(Checkpoint, the_newest_whole_one_is_used) {
  const Interrupted run;
  truncate_file(run.path("checkpoint-5/optimizer.safetensors"));
  flip_byte(run.path("checkpoint-4/model.safetensors"), 10);
  storage::make_folders(run.path("checkpoint-900"));  // an empty one: of a copy that was cut off
  storage::make_folders(run.path("checkpoint-old"));
  const auto found = find_checkpoint("latest", run.arguments.output_dir);
  EXPECT_EQ(found->state.global_step, 2);
  TrainingArguments whole = rich_arguments(run.world, "whole");
  whole.logging_steps = 1;
  run.world.run(whole);
  run.world.run(run.arguments);
  EXPECT_EQ(files_of(whole.output_dir).at("model.safetensors"), files_of(run.arguments.output_dir).at("model.safetensors"));
}

TEST(Checkpoint, a_named_one_is_not_replaced_by_another) {
  const Interrupted run;
  truncate_file(run.path("checkpoint-5/model.safetensors"));
  TrainingArguments a = run.arguments;
  a.resume_from_checkpoint = run.path("checkpoint-5");
  EXPECT_THAT(message_of(ErrorKind::corrupt, [&] { run.world.run(a); }), HasSubstr("checkpoint-5/model.safetensors"));
  a.resume_from_checkpoint = run.path("checkpoint-77");
  EXPECT_THAT(message_of(ErrorKind::not_found, [&] { run.world.run(a); }), HasSubstr("no such folder; check the path"));
}

TEST(Checkpoint, none_is_an_error_unless_auto) {
  const World world(20);
  TrainingArguments a = world.arguments("out");
  a.max_steps = 1;
  a.resume_from_checkpoint = "latest";
  EXPECT_THAT(message_of(ErrorKind::not_found, [&] { world.run(a); }), HasSubstr("no whole checkpoint"));
  a.resume_from_checkpoint = "auto";
  EXPECT_EQ(world.run(a).global_step, 1);
}

TEST(Checkpoint, of_another_run_is_refused_naming_what_differs) {
  const Interrupted run;
  const auto message = [&](const std::function<void(TrainingArguments&, TrainInputs&)>& change) {
    TrainingArguments a = run.arguments;
    TrainInputs in = run.world.inputs();
    change(a, in);
    return message_of(ErrorKind::invalid_argument, [&] { train(a, std::move(in), run.world.threads); });
  };
  EXPECT_THAT(message([](auto& a, auto&) { a.learning_rate = 1e-3; }), HasSubstr("learning_rate was 0.002, is 0.001"));
  EXPECT_THAT(message([](auto& a, auto&) { a.seed = 1; }), HasSubstr("seed was 42, is 1"));
  EXPECT_THAT(message([](auto& a, auto&) { a.hidden_dropout_prob = 0.2; }), HasSubstr("hidden_dropout_prob was not set, is 0.2"));
  EXPECT_THAT(message([](auto& a, auto&) { a.fp32 = false, a.bf16 = true; }), HasSubstr("precision was f32, is bf16"));
  data::Dataset other = run.world.train_data;
  other.labels[0] = (other.labels[0] + 1) % 3;
  EXPECT_THAT(message([&](auto&, auto& in) { in.train = &other; }), HasSubstr("training data differs"));
  EXPECT_THAT(message([](auto&, auto& in) { in.parameters.at("head.out.bias").template as<float>()[0] += 1; }),
              HasSubstr("starting weights differs"));
  // What does not change the result may change.
  TrainingArguments a = run.arguments;
  a.logging_steps = 2, a.save_steps = 4, a.per_device_eval_batch_size = 3;
  EXPECT_EQ(run.world.run(a).outcome, Outcome::finished);
}

TEST(Checkpoint, rotation_keeps_the_newest_and_the_best) {
  const Folder folder;
  const auto fill = [&] {
    for (const int step : {2, 4, 10, 20, 100}) storage::make_folders(folder.path("o/checkpoint-" + std::to_string(step)));
    storage::make_folders(folder.path("o/checkpoint-x"));
  };
  const auto left = [&] {
    std::set<std::string> names;
    for (const auto& f : list_checkpoints(folder.path("o"))) names.insert(f.substr(f.rfind('-') + 1));
    return names;
  };
  fill();
  EXPECT_EQ(list_checkpoints(folder.path("o")).front(), folder.path("o/checkpoint-100"));
  rotate_checkpoints(folder.path("o"), 3, "checkpoint-4");
  EXPECT_EQ(left(), (std::set<std::string>{"4", "20", "100"}));
  rotate_checkpoints(folder.path("o"), 1, "checkpoint-4");
  EXPECT_EQ(left(), (std::set<std::string>{"4", "100"}));
  fill();
  rotate_checkpoints(folder.path("o"), 1, "");
  EXPECT_EQ(left(), (std::set<std::string>{"100"}));
  EXPECT_TRUE(storage::is_folder(folder.path("o/checkpoint-x")));
}

}  // namespace
}  // namespace muster::train
