#include "train/tensorboard.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>

#include "core/error.h"
#include "storage/file.h"
#include "train/meter.h"

namespace muster::train {
namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

template <typename T>
void put_fixed(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

// Protobuf wire format (protobuf.dev/programming-guides/encoding): a tag is field * 8 + wire type.
void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>((value & 0x7f) | 0x80));
  out.push_back(static_cast<char>(value));
}
void put_int(std::string& out, uint32_t field, uint64_t value) {
  put_varint(out, field * 8 + 0);
  put_varint(out, value);
}
void put_double(std::string& out, uint32_t field, double value) {
  put_varint(out, field * 8 + 1);
  put_fixed(out, std::bit_cast<uint64_t>(value));
}
void put_float(std::string& out, uint32_t field, float value) {
  put_varint(out, field * 8 + 5);
  put_fixed(out, std::bit_cast<uint32_t>(value));
}
void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_varint(out, field * 8 + 2);
  put_varint(out, bytes.size());
  out += bytes;
}

// Event: wall_time 1 (double), step 2 (int64), file_version 3 (string), summary 5. Summary: value 1. Value: tag 1, simple_value 2 (float),
// tensor 8, metadata 9.
std::string summary_event(double wall_time, int64_t step, std::string_view value) {
  std::string summary, event;
  put_bytes(summary, 1, value);
  put_double(event, 1, wall_time);
  if (step != 0) put_int(event, 2, static_cast<uint64_t>(step));  // proto3 leaves zeros out
  put_bytes(event, 5, summary);
  return event;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? std::string(name.data()) : "localhost";
}

// A value of a dashboard: its tensor, and metadata with the plugin's name and content. SummaryMetadata: plugin_data 1 {plugin_name 1,
// content 2}.
std::string plugin_event(double wall_time, int64_t step, std::string_view tag, std::string_view tensor, std::string_view name,
                         std::string_view content) {
  std::string plugin, metadata, v;
  put_bytes(plugin, 1, name);
  if (!content.empty()) put_bytes(plugin, 2, content);
  put_bytes(metadata, 1, plugin);
  put_bytes(v, 1, tag);
  put_bytes(v, 8, tensor);
  put_bytes(v, 9, metadata);
  return summary_event(wall_time, step, v);
}

// HParamsPluginData (tensorboard/plugins/hparams/plugin_data.proto): version 1, session_start_info 3, session_end_info 4. The tensor is an
// empty one of floats, what matters is the content.
std::string hparams_event(double wall_time, std::string_view tag, std::string_view data) {
  std::string shape, tensor;
  put_bytes(shape, 2, {});  // one dimension of size 0
  put_int(tensor, 1, 1);    // DT_FLOAT
  put_bytes(tensor, 2, shape);
  return plugin_event(wall_time, 0, tag, tensor, "hparams", data);
}

// google.protobuf.Value: number_value 2, string_value 3, bool_value 4.
std::string protobuf_value(const std::string& text) {
  std::string value;
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text == "true" || text == "false")
    put_int(value, 4, text == "true");
  else if (!text.empty() && code == std::errc{} && end == text.data() + text.size())
    put_double(value, 2, number);
  else
    put_bytes(value, 3, text);
  return value;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffffu;
  for (const char c : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

std::string tfrecord(std::string_view data) {
  std::string out;
  put_fixed(out, static_cast<uint64_t>(data.size()));
  put_fixed(out, masked(crc32c(out)));
  out += data;
  put_fixed(out, masked(crc32c(data)));
  return out;
}

std::string version_event(double wall_time) {
  std::string event;
  put_double(event, 1, wall_time);
  put_bytes(event, 3, "brain.Event:2");
  return event;
}

std::string scalar_event(double wall_time, int64_t step, std::string_view tag, float value) {
  std::string v;
  put_bytes(v, 1, tag);
  put_float(v, 2, value);
  return summary_event(wall_time, step, v);
}

std::string text_event(double wall_time, int64_t step, std::string_view tag, std::string_view text) {
  // TensorProto: dtype 1 (DT_STRING = 7), tensor_shape 2 {dim 2 {size 1}}, string_val 8.
  std::string dim, shape, tensor;
  put_int(dim, 1, 1);
  put_bytes(shape, 2, dim);
  put_int(tensor, 1, 7);
  put_bytes(tensor, 2, shape);
  put_bytes(tensor, 8, text);
  return plugin_event(wall_time, step, tag, tensor, "text", {});
}

std::string hparams_start_event(double wall_time, const std::map<std::string, std::string>& hparams) {
  std::string info, data;
  for (const auto& [name, text] : hparams) {
    std::string entry;
    put_bytes(entry, 1, name);
    put_bytes(entry, 2, protobuf_value(text));
    put_bytes(info, 1, entry);
  }
  put_double(info, 5, wall_time);
  put_bytes(data, 3, info);
  return hparams_event(wall_time, "_hparams_/session_start_info", data);
}

std::string hparams_end_event(double wall_time) {
  std::string info, data;
  put_int(info, 1, 1);  // STATUS_SUCCESS
  put_double(info, 2, wall_time);
  put_bytes(data, 4, info);
  return hparams_event(wall_time, "_hparams_/session_end_info", data);
}

std::string tensorboard_tag(std::string_view name) {
  for (const std::string_view group : {"eval", "test"})
    if (name.size() > group.size() && name.starts_with(group) && name[group.size()] == '_')
      return std::string(group) + "/" + std::string(name.substr(group.size() + 1));
  return (is_meter_value(name) ? "perf/" : "train/") + std::string(name);
}

EventWriter::EventWriter(const std::string& folder) {
  static std::atomic<int> count{0};
  storage::make_folders(folder);
  const double time = now();
  path_ = fmt::format("{}/events.out.tfevents.{}.{}.{}.{}", folder, static_cast<int64_t>(time), host_name(), ::getpid(), count++);
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) throw Error(ErrorKind::io, "cannot write {} (TensorBoard events): {}", path_, errno_text(errno));
  append(version_event(time));
}

EventWriter::~EventWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void EventWriter::scalars(const Record& record) {
  const double time = now();
  std::string all;
  for (const auto& [name, value] : record.values)
    all += tfrecord(scalar_event(time, record.step, tensorboard_tag(name), static_cast<float>(value)));
  all += tfrecord(scalar_event(time, record.step, "train/epoch", static_cast<float>(record.epoch)));
  append_raw(all);
}

void EventWriter::hparams(const std::map<std::string, std::string>& values) { append(hparams_start_event(now(), values)); }
void EventWriter::finished() { append(hparams_end_event(now())); }

void EventWriter::text(std::string_view tag, std::string_view text) { append(text_event(now(), 0, tag, text)); }

void EventWriter::append(std::string_view event) { append_raw(tfrecord(event)); }

void EventWriter::append_raw(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw Error(ErrorKind::io, "cannot write {} (TensorBoard events): {}; free space there or choose another --output_dir", path_,
                  errno_text(errno));
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace muster::train
