// The program of a training step: losses of PyTorch's training runs, accumulation, class weights, threads, evaluation.
#include "train/task.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "storage/file.h"
#include "train/evaluate.h"
#include "train/gradient_norm.h"
#include "train/optimizer.h"
#include "train/schedule.h"
#include "train/used_rows.h"
#include "train/world.h"

namespace muster::train {
namespace {

runtime::Options options_of(const std::string& backend) {
  runtime::Options options;
  options.backend = backend;
  options.precision = runtime::Precision::f32;
  return options;
}

/// A golden batch as a window of one.
Window window_of(const models::ModelConfig& config, const nlohmann::json& step) {
  std::vector<int32_t> ids, types, bounds{0};
  for (const auto& s : step["sequences"]) {
    for (const int32_t id : s["ids"]) ids.push_back(id);
    if (s.contains("type_ids"))
      for (const int32_t type : s["type_ids"]) types.push_back(type);
    bounds.push_back(static_cast<int32_t>(ids.size()));
  }
  const auto labels = step["labels"].get<std::vector<int32_t>>();
  Window window;
  window.batches.push_back(models::make_inputs(config, ids, types, bounds));
  models::add_labels(window.batches[0], config, labels, std::vector<float>(labels.size(), 1.0f / static_cast<float>(labels.size())));
  return window;
}

class GoldenRun : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(GoldenRun, ten_steps_have_the_losses_of_pytorch) {
  const auto& [backend, name] = GetParam();
  const std::string folder = std::string(MUSTER_TEST_DATA) + "/models/" + name;
  models::ModelConfig config = models::read_config(folder);
  config.hidden_dropout = config.attention_dropout = config.classifier_dropout = 0;
  models::LoadReport report;
  const models::Parameters parameters = models::load_parameters(folder, config, {}, report);
  const auto run = golden("models/" + name + "/golden.json")["training"];
  const auto& hyper = run["hyper_parameters"];
  TrainingArguments a;
  a.learning_rate = hyper["learning_rate"], a.warmup_steps = hyper["warmup_steps"], a.max_steps = hyper["total_steps"];
  a.adam_beta1 = hyper["beta1"], a.adam_beta2 = hyper["beta2"], a.adam_epsilon = hyper["epsilon"], a.weight_decay = hyper["weight_decay"];
  const Plan plan = plan_steps(a, 100);

  ThreadPool threads(2);
  ClassificationTask task(config, parameters, 0, options_of(backend), threads);
  OptimizerStep optimizer(parameters, a, options_of(backend), threads);
  int64_t step = 0;
  for (const auto& s : run["steps"]) {
    const double loss = task.run(window_of(config, s), 1, step);
    EXPECT_NEAR(loss, s["loss"].get<double>(), 1e-4 * s["loss"].get<double>()) << "step " << step;
    const double norm = global_norm(task.gradients(), threads);
    EXPECT_NEAR(norm, s["grad_norm"].get<double>(), 1e-3 * s["grad_norm"].get<double>()) << "step " << step;
    EXPECT_NEAR(learning_rate(a, plan, step), s["learning_rate"].get<double>(), 1e-12);
    optimizer.update(task.gradients(), step + 1, learning_rate(a, plan, step), 1);
    task.parameters_changed();
    ++step;
  }
  ASSERT_EQ(step, 10);
}

INSTANTIATE_TEST_SUITE_P(train, GoldenRun,
                         testing::Combine(testing::Values("ref", "cpu"), testing::Values("bert", "roberta", "distilbert")),
                         [](const auto& name) { return std::get<0>(name.param) + "_" + std::get<1>(name.param); });

/// Losses and final weights of some steps over the small world.
struct Steps {
  std::vector<double> losses;
  models::Parameters parameters, gradients;
};
Steps run_steps(const World& world, int64_t batch_size, int64_t batches_per_step, int threads_wanted,
                const std::vector<double>& weights = {}, int64_t steps = 4) {
  ThreadPool threads(threads_wanted);
  const auto dataset = data::tokenize(world.train_data, world.tokenizer, 32, threads);
  data::LoaderOptions options;
  options.batch_size = batch_size;
  const data::Loader loader(dataset, options);
  TrainInputs in = world.inputs();
  Steps out;
  ClassificationTask task(in.config, in.parameters, 0, options_of("cpu"), threads);
  OptimizerStep optimizer(in.parameters, TrainingArguments(), options_of("cpu"), threads);
  for (int64_t step = 0; step < steps; ++step) {
    out.losses.push_back(task.run(make_window(loader, in.config, weights, step, batches_per_step), 9, step));
    if (step == 0)
      for (const auto& [name, tensor] : task.gradients()) out.gradients[name] = tensor.clone();
    optimizer.update(task.gradients(), step + 1, 1e-3, clip_factor(global_norm(task.gradients(), threads), 1));
    task.parameters_changed();
  }
  out.parameters = in.parameters;
  return out;
}

TEST(Task, four_batches_of_8_are_one_of_32) {
  const World world(80, 0.0);  // 80 rows: the last window of an epoch is smaller
  const Steps once = run_steps(world, 32, 1, 2), accumulated = run_steps(world, 8, 4, 2);
  for (size_t i = 0; i < once.losses.size(); ++i) EXPECT_NEAR(once.losses[i], accumulated.losses[i], 1e-5) << i;
  for (const auto& [name, tensor] : once.gradients)
    for (int64_t i = 0; i < tensor.elements(); ++i)
      EXPECT_NEAR(tensor.as<float>()[static_cast<size_t>(i)], accumulated.gradients.at(name).as<float>()[static_cast<size_t>(i)], 1e-5)
          << name << " " << i;
}

TEST(Task, class_weights_count_over_the_whole_window) {
  const World world(80, 0.0);
  const std::vector<double> weights{3, 0.5, 1};
  const Steps once = run_steps(world, 32, 1, 2, weights), accumulated = run_steps(world, 8, 4, 2, weights);
  for (size_t i = 0; i < once.losses.size(); ++i) EXPECT_NEAR(once.losses[i], accumulated.losses[i], 1e-5) << i;
  EXPECT_GT(std::abs(once.losses[0] - run_steps(world, 32, 1, 2).losses[0]), 1e-3);
}

TEST(Task, the_bits_do_not_depend_on_threads) {
  const World world(64, 0.1);
  const Steps one = run_steps(world, 16, 2, 1), three = run_steps(world, 16, 2, 3);
  EXPECT_EQ(one.losses, three.losses);
  expect_same(one.parameters, three.parameters);
}

TEST(UsedRows, training_them_alone_is_training_the_whole_table) {
  World world(40, 0.1);
  world.config.vocab_size = 50;  // 20 rows more than the tokenizer has
  world.start = models::init_parameters(world.config, 3);
  ThreadPool threads(2);
  TrainingArguments a;
  a.weight_decay = 0.1;
  const auto dataset = data::tokenize(world.train_data, world.tokenizer, 32, threads);
  auto renumbered = dataset;
  const TrainInputs whole = world.inputs(), small = world.inputs();
  UsedRows used(renumbered, small.config, small.parameters);
  EXPECT_LT(used.config().vocab_size, 30);
  EXPECT_EQ(used.parameters().at("embeddings.word.weight").shape()[0], used.config().vocab_size);
  const data::Loader loader(dataset, {}), small_loader(renumbered, {});
  ClassificationTask whole_task(whole.config, whole.parameters, 0, options_of("cpu"), threads);
  ClassificationTask small_task(used.config(), used.parameters(), 0, options_of("cpu"), threads);
  OptimizerStep whole_optimizer(whole.parameters, a, options_of("cpu"), threads),
      small_optimizer(used.parameters(), a, options_of("cpu"), threads);
  for (int64_t step = 0; step < 6; ++step) {
    const double rate = 1e-3 / static_cast<double>(step + 1);
    const double whole_loss = whole_task.run(make_window(loader, whole.config, {}, step, 1), 7, step);
    EXPECT_EQ(whole_loss, small_task.run(make_window(small_loader, used.config(), {}, step, 1), 7, step)) << step;
    whole_optimizer.update(whole_task.gradients(), step + 1, rate, 0.5);
    small_optimizer.update(small_task.gradients(), step + 1, rate, 0.5);
    used.count_step(rate, a.weight_decay);
    whole_task.parameters_changed(), small_task.parameters_changed();
    if (step % 2 == 1) {
      used.write_back(threads);
      expect_same(whole.parameters, small.parameters);
    }
  }
}

TEST(Task, windows_cover_an_epoch_once) {
  const World world(44);
  const auto dataset = data::tokenize(world.train_data, world.tokenizer, 32, world.threads);
  data::LoaderOptions options;
  options.batch_size = 8;
  const data::Loader loader(dataset, options);  // 6 batches, windows of 4 and 2
  std::vector<int64_t> rows;
  for (int64_t step = 2; step < 4; ++step) {
    const Window window = make_window(loader, world.config, {}, step, 4);
    rows.insert(rows.end(), window.rows.begin(), window.rows.end());
    double weight = 0;
    for (const auto& batch : window.batches)
      for (const float w : batch.at("sample_weights").as<float>()) weight += static_cast<double>(w);
    EXPECT_NEAR(weight, 1, 1e-6);
  }
  std::sort(rows.begin(), rows.end());
  ASSERT_EQ(rows.size(), 44u);
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], static_cast<int64_t>(i));
}

TEST(Task, dropout_seeds_differ) {
  std::set<uint64_t> seeds;
  for (int64_t step = 0; step < 100; ++step)
    for (int64_t batch = 0; batch < 4; ++batch) seeds.insert(dropout_seed(42, step, batch));
  EXPECT_EQ(seeds.size(), 400u);
  EXPECT_EQ(dropout_seed(42, 7, 1), dropout_seed(42, 7, 1));
  EXPECT_NE(dropout_seed(42, 7, 1), dropout_seed(43, 7, 1));
}

TEST(Evaluate, does_not_depend_on_the_batch_and_agrees_with_itself) {
  const World world;
  const TrainInputs in = world.inputs();
  const auto dataset = data::tokenize(world.eval_data, world.tokenizer, 32, world.threads);
  Evaluator evaluator(in.config, in.parameters, options_of("cpu"), world.threads);
  const Evaluation one = *evaluator.run(dataset, 1), all = *evaluator.run(dataset, 100);
  EXPECT_EQ(one.logits, all.logits);
  EXPECT_EQ(one.predictions, all.predictions);
  EXPECT_EQ(one.rows, 24);
  EXPECT_EQ(one.batches, 24);
  EXPECT_EQ(all.batches, 1);
  double loss = 0;
  for (int64_t r = 0; r < all.rows; ++r) {
    const auto p = scores(all, r);
    EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-12);
    loss -= std::log(p[static_cast<size_t>(world.eval_data.labels[static_cast<size_t>(r)])]);
  }
  EXPECT_NEAR(all.loss, loss / static_cast<double>(all.rows), 1e-9);
  const Folder folder;
  write_predictions(folder.path("p.txt"), all, in.config.labels, false);
  const std::string text = storage::read_file(folder.path("p.txt"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 24);
  EXPECT_THAT(text, testing::StartsWith(in.config.labels[static_cast<size_t>(all.predictions[0])] + "\n"));
  write_predictions(folder.path("n.txt"), all, in.config.labels, true);
  EXPECT_THAT(storage::read_file(folder.path("n.txt")), testing::StartsWith(std::to_string(all.predictions[0]) + "\n"));
}

TEST(Evaluate, stops_when_told_and_refuses_broken_weights) {
  const World world;
  TrainInputs in = world.inputs();
  const auto dataset = data::tokenize(world.eval_data, world.tokenizer, 32, world.threads);
  Evaluator evaluator(in.config, in.parameters, options_of("cpu"), world.threads);
  const std::atomic<bool> stop{true};
  EXPECT_EQ(evaluator.run(dataset, 8, &stop), std::nullopt);
  in.parameters.at("head.out.bias").as<float>()[1] = std::nanf("");
  evaluator.parameters_changed();
  EXPECT_THAT(message_of(ErrorKind::invalid_argument, [&] { evaluator.run(dataset, 8); }), testing::HasSubstr("row 0"));
}

}  // namespace
}  // namespace muster::train
