// What muster top shows, from a run's folder alone; what a step costs on paper.
#include "train/run_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "core/error.h"
#include "models/flops.h"
#include "storage/file.h"
#include "train/meter.h"
#include "train/world.h"

namespace muster::train {
namespace {

using testing::HasSubstr;
using testing::Not;

struct RunFolder {
  Folder folder;
  std::string path = folder.path("view");
  RunInfo info;
  RunFolder() {
    storage::make_folders(path);
    info.task = "masked_lm", info.model = "tiny", info.isa = "avx2", info.precision = "f32";
    info.pid = ::getpid(), info.total_steps = 100, info.steps_per_epoch = 50, info.threads = 2, info.parameters = 4'400'000;
    info.started = 4e9;  // later than this process
    write_run_info(path, info);
  }
  void log(const std::string& text) const { std::ofstream(path + "/metrics.jsonl", std::ios::app) << text; }
};

TEST(RunView, ShowsWhatTheLogSays) {
  const RunFolder folder;
  EXPECT_THAT(render(read_run(folder.path, 0), 100, 40, false), HasSubstr("no log line yet"));
  for (int step = 10; step <= 40; step += 10)
    folder.log(
        fmt::format("{{\"step\":{},\"epoch\":0.2,\"loss\":{},\"step_ms\":200.0,\"data_ms\":2.0,\"compute_ms\":180.0,\"cpu_percent\":95.0,"
                    "\"memory_mb\":512.0,\"tokens_per_second\":1234.0}}\n",
                    step, 5 - step / 10));
  folder.log("{\"step\":40,\"epoch\":0.8,\"eval_loss\":1.5,\"eval_accuracy\":0.75,\"eval_runtime\":1.0}\n");
  folder.log("{\"step\":50,\"epo");  // being written
  const RunView view = read_run(folder.path, 4e9);
  EXPECT_EQ(view.state, RunView::State::running);
  EXPECT_EQ(view.steps.size(), 4u);
  EXPECT_DOUBLE_EQ(seconds_left(view), 60 * 0.2);
  const std::string text = render(view, 60, 40, false);
  for (const char* part : {"masked_lm  running", "step 40/100  epoch 0.80  0:12 left", "   4.000 #", "   1.000 ####",
                           "eval      step 40  loss 1.5  accuracy 0.75", "200 ms: data 1.0 %, compute 90.0 %", "95 % of 2  memory 512 MB",
                           "no checkpoint yet", "4.4 M parameters"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(text, Not(HasSubstr("runtime")));
  EXPECT_THAT(render(view, 60, 40, true), HasSubstr("█"));
  const auto json = nlohmann::json::parse(to_json(view));
  EXPECT_EQ(json["state"], "running");
  EXPECT_EQ(json["last"]["loss"], 1.0);
  EXPECT_EQ(json["evaluation"]["eval_loss"], 1.5);
}

TEST(RunView, KeepsToTheSizeOfTheTerminal) {
  const RunFolder folder;
  for (int step = 1; step <= 500; ++step) folder.log(fmt::format("{{\"step\":{},\"loss\":{}}}\n", step, step % 7 == 0 ? "null" : "2.5"));
  const RunView view = read_run(folder.path, 4e9);
  for (const int width : {10, 40, 80, 200})
    for (const int height : {1, 5, 9, 24, 60}) {
      std::istringstream lines(render(view, width, height, false));
      int count = 0;
      for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), static_cast<size_t>(width));
      EXPECT_LE(count, height);
    }
}

TEST(RunView, TellsAnEndedRunFromALostOne) {
  RunFolder folder;
  folder.info.pid = 1 << 22;  // beyond the numbers of processes
  write_run_info(folder.path, folder.info);
  EXPECT_EQ(read_run(folder.path, 4e9).state, RunView::State::stopped);
  folder.info.started = 0;
  write_run_info(folder.path, folder.info);
  for (const char* name : {"model.safetensors", "train_results.json"}) std::ofstream(folder.path + "/" + name) << "{}";
  EXPECT_EQ(read_run(folder.path, 4e9).state, RunView::State::finished);
}

TEST(RunView, SaysWhatIsNoRun) {
  const RunFolder folder;
  EXPECT_THROW(read_run("/nowhere", 0), Error);
  EXPECT_THROW(read_run(folder.folder.path("nothing"), 0), Error);
  std::ofstream(folder.path + "/run.json") << "{\"task\":1";
  EXPECT_THROW(read_run(folder.path, 0), Error);
}

TEST(Meter, CountsStepsAndNamesItsValues) {
  Meter meter(2, 1e-12);
  EXPECT_TRUE(meter.take().empty());
  StepOutcome outcome;
  outcome.tokens = 100, outcome.samples = 4, outcome.flops = 1;
  meter.add(Phase::compute, 0.25);
  meter.count(outcome);
  meter.count(outcome);
  const Scalars values = meter.take();
  for (const auto& [name, value] : values) {
    EXPECT_TRUE(is_meter_value(name)) << name;
    if (name == "compute_ms") {
      EXPECT_DOUBLE_EQ(value, 125);
    }
    if (name == "tokens_per_second") {
      EXPECT_GT(value, 0);
    }
  }
  EXPECT_EQ(values.size(), 12u);
  EXPECT_FALSE(is_meter_value("loss"));
  EXPECT_FALSE(is_meter_value("eval_samples_per_second"));
  EXPECT_TRUE(meter.take().empty());
}

TEST(Flops, BertBaseByHand) {
  models::ModelConfig config = models::named_config("bert-base");
  models::BatchSize batch;
  const std::vector<int32_t> cu{0, 128, 256};
  batch.add(cu, 38);
  EXPECT_EQ(batch.tokens, 256);
  EXPECT_EQ(batch.squares, 2.0 * 128 * 128);
  const double layer = 4.0 * 768 * 768 + 2.0 * 768 * 3072;
  const double encoder = 12 * (layer * 256 + 2.0 * 768 * 2 * 128 * 128);
  config.head = models::Head::masked_lm;
  EXPECT_DOUBLE_EQ(models::training_flops(config, batch), 6 * (encoder + 38.0 * (768.0 * 768 + 768.0 * 30522)));
  config.head = models::Head::classification;
  EXPECT_DOUBLE_EQ(models::training_flops(config, batch), 6 * (encoder + 2.0 * (768.0 * 768 + 2 * 768)));
}

}  // namespace
}  // namespace muster::train
