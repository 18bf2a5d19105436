// Event files that TensorBoard reads: scalars over the steps and texts. No library: the format is two small fixed messages in a frame.
// Format: TFRecord framing (tensorflow/core/lib/io/record_writer.h) around protobuf messages Event and Summary
// (tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto, tensor.proto).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "train/record.h"

namespace muster::train {

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4) of the bytes.
uint32_t crc32c(std::string_view bytes);

/// length (u64 LE), masked crc of the length, data, masked crc of the data.
std::string tfrecord(std::string_view data);

/// Serialised Event messages. `wall_time`: seconds since 1970.
std::string version_event(double wall_time);
std::string scalar_event(double wall_time, int64_t step, std::string_view tag, float value);
/// A text for the plugin "text"; markdown.
std::string text_event(double wall_time, int64_t step, std::string_view tag, std::string_view text);

/// Of the dashboard "hparams": the arguments of a run (numbers and true or false are written as such), and that it ended well.
std::string hparams_start_event(double wall_time, const std::map<std::string, std::string>& hparams);
std::string hparams_end_event(double wall_time);

/// "eval_loss" -> "eval/loss", "loss" -> "train/loss", "train_runtime" -> "train/train_runtime": the tags Transformers uses;
/// "step_ms" and what else Meter gives -> "perf/step_ms".
std::string tensorboard_tag(std::string_view name);

/// Appends to <folder>/events.out.tfevents.<seconds>.<host>.<pid>.<n>, a file of its own for each writer. Every call reaches the file
/// before it returns. Throws Error(io).
class EventWriter {
 public:
  explicit EventWriter(const std::string& folder);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// Every value of the record and its epoch.
  void scalars(const Record& record);
  void text(std::string_view tag, std::string_view text);
  void hparams(const std::map<std::string, std::string>& values);
  /// The run ended well.
  void finished();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void append(std::string_view event);      // one event, framed
  void append_raw(std::string_view bytes);  // framed ones
  std::string path_;
  int fd_ = -1;
};

}  // namespace muster::train
