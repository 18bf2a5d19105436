// What a run tells while it goes: TensorBoard events, metrics.jsonl, the progress line.
#include <cmath>
#include <filesystem>
#include <limits>

#include "storage/file.h"
#include "train/metrics_log.h"
#include "train/progress.h"
#include "train/tensorboard.h"
#include "train/world.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return text;
}

TEST(TensorBoard, crc_is_castagnoli) {
  // RFC 3720, appendix B.4.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(TensorBoard, events_are_those_of_its_own_writer) {
  const auto g = golden("train/events.json");
  const std::string version = version_event(1700000000.25), scalar = scalar_event(1700000001.5, 300, "train/loss", 0.625f),
                    text = text_event(1700000002.0, 7, "args", "| a | b |");
  EXPECT_EQ(hex(version), g["version"]["event"]);
  EXPECT_EQ(hex(scalar), g["scalar"]["event"]);
  EXPECT_EQ(hex(text), g["text"]["event"]);
  EXPECT_EQ(hex(hparams_start_event(1700000003.0, {{"adam_beta1", "0.9"}, {"bf16", "true"}, {"optim", "lamb"}})), g["hparams"]["event"]);
  EXPECT_EQ(hex(hparams_end_event(1700000004.0)), g["hparams_end"]["event"]);
  EXPECT_EQ(hex(tfrecord(version)), g["version"]["frame"]);
  EXPECT_EQ(hex(tfrecord(scalar)), g["scalar"]["frame"]);
  EXPECT_EQ(hex(tfrecord(text)), g["text"]["frame"]);
}

TEST(TensorBoard, tags_are_those_of_transformers) {
  EXPECT_EQ(tensorboard_tag("loss"), "train/loss");
  EXPECT_EQ(tensorboard_tag("eval_f1_macro"), "eval/f1_macro");
  EXPECT_EQ(tensorboard_tag("train_runtime"), "train/train_runtime");
  EXPECT_EQ(tensorboard_tag("step_ms"), "perf/step_ms");
}

/// The payloads of a file of frames; each frame is checked.
std::vector<std::string> frames_of(std::string_view bytes) {
  std::vector<std::string> events;
  while (bytes.size() >= 16) {
    uint64_t size = 0;
    std::memcpy(&size, bytes.data(), 8);
    const std::string event(bytes.substr(12, size));
    EXPECT_EQ(tfrecord(event), bytes.substr(0, 16 + size));
    events.push_back(event);
    bytes.remove_prefix(std::min<size_t>(bytes.size(), 16 + size));
  }
  EXPECT_TRUE(bytes.empty());
  return events;
}

TEST(TensorBoard, a_file_holds_every_value_at_once) {
  const Folder folder;
  EventWriter writer(folder.path("runs")), another(folder.path("runs"));
  EXPECT_NE(writer.path(), another.path());
  EXPECT_THAT(std::filesystem::path(writer.path()).filename().string(), testing::StartsWith("events.out.tfevents."));
  writer.text("args", "x");
  writer.scalars({5, 0.5, {{"loss", 1.0}, {"eval_accuracy", 0.25}}});
  const auto events = frames_of(storage::read_file(writer.path()));  // while the writer is still open
  ASSERT_EQ(events.size(), 5u);
  EXPECT_THAT(events[0], HasSubstr("brain.Event:2"));
  EXPECT_THAT(events[2], HasSubstr("train/loss"));
  EXPECT_THAT(events[3], HasSubstr("eval/accuracy"));
  EXPECT_THAT(events[4], HasSubstr("train/epoch"));
}

TEST(MetricsLog, is_one_object_a_line) {
  const Folder folder;
  storage::make_folders(folder.path(""));
  MetricsLog log(folder.path(""), {});
  log.append({10, 0.25, {{"loss", 0.5}, {"broken", std::nan("")}}});
  log.append({20, 0.5, {{"eval_loss", 0.1}}});
  EXPECT_EQ(storage::read_file(folder.path("metrics.jsonl")),
            "{\"step\":10,\"epoch\":0.25,\"loss\":0.5,\"broken\":null}\n{\"step\":20,\"epoch\":0.5,\"eval_loss\":0.1}\n");
  const MetricsLog resumed(folder.path(""), {{10, 0.25, {{"loss", 0.5}}}});
  EXPECT_EQ(storage::read_file(folder.path("metrics.jsonl")), "{\"step\":10,\"epoch\":0.25,\"loss\":0.5}\n");
}

TEST(ProgressLine, fits_every_width) {
  ProgressView view;
  view.step = 123, view.total_steps = 4080, view.loss = 0.98765, view.learning_rate = 9.7e-5, view.tokens_per_second = 23456,
  view.seconds_left = 3725;
  for (int width = 0; width < 140; ++width) EXPECT_LE(progress_line(view, width).size(), static_cast<size_t>(width)) << width;
  EXPECT_EQ(progress_line(view, 100),
            "  3% [..............................] 123/4080  loss 0.9877  1:02:05 left  23k tokens/s  lr 9.70e-05");
  EXPECT_EQ(progress_line(view, 40), "  3% 123/4080  loss 0.9877  1:02:05 left");
  EXPECT_EQ(progress_line(view, 34), "  3% [.....] 123/4080  loss 0.9877");
  view.step = 4080;
  EXPECT_THAT(progress_line(view, 100), testing::StartsWith("100% [#############################] 4080/4080"));
}

TEST(ProgressLine, durations_are_short) {
  EXPECT_EQ(duration_text(7.9), "0:07");
  EXPECT_EQ(duration_text(123), "2:03");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(-1), "0:00");
}

TEST(ProgressLine, a_record_is_one_line) {
  EXPECT_EQ(record_line({50, 0.49, {{"loss", 1.23456}, {"grad_norm", 2.3111}, {"learning_rate", 9.8e-5}}}, 408),
            "step 50/408  epoch 0.49  loss 1.2346  grad_norm 2.311  lr 9.8e-05");
}

}  // namespace
}  // namespace muster::train
