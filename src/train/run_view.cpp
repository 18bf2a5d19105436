#include "train/run_view.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.h"
#include "storage/file.h"
#include "storage/safetensors.h"
#include "train/checkpoint.h"
#include "train/meter.h"
#include "train/progress.h"

namespace muster::train {
namespace {

using nlohmann::json;
constexpr const char* kFile = "run.json";
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

std::string this_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

double modified(const std::string& path) {
  struct stat s{};
  return ::stat(path.c_str(), &s) == 0 ? static_cast<double>(s.st_mtim.tv_sec) + static_cast<double>(s.st_mtim.tv_nsec) / 1e9 : 0;
}

/// A process of that number that is no older than the run: a number may have been given to another one since.
bool alive(const RunInfo& info) {
  if (info.host != this_host() || info.pid <= 0) return false;
  if (::kill(static_cast<pid_t>(info.pid), 0) != 0 && errno != EPERM) return false;
  return modified(fmt::format("/proc/{}", info.pid)) <= info.started + 60;
}

double value_of(const Record& record, std::string_view name) {
  for (const auto& [key, value] : record.values)
    if (key == name) return value;
  return kMissing;
}

std::vector<Record> read_records(const std::string& path) {
  std::vector<Record> records;
  if (!storage::is_file(path)) return records;
  const std::string text = storage::read_file(path);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // being written
    const auto line = nlohmann::ordered_json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                                    text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    begin = end + 1;
    if (!line.is_object()) continue;
    Record record;
    for (const auto& [key, value] : line.items()) {
      const double number = value.is_number() ? value.get<double>() : kMissing;
      if (key == "step")
        record.step = value.is_number_integer() ? value.get<int64_t>() : 0;
      else if (key == "epoch")
        record.epoch = number;
      else
        record.values.emplace_back(key, number);
    }
    records.push_back(std::move(record));
  }
  return records;
}

/// Means of the losses in `columns` groups of equal size.
std::vector<double> curve(const std::vector<Record>& steps, size_t columns) {
  const size_t n = std::min(columns, steps.size());
  std::vector<double> means(n);
  for (size_t c = 0; c < n; ++c) {
    const size_t begin = c * steps.size() / n, end = (c + 1) * steps.size() / n;
    for (size_t i = begin; i < end; ++i) means[c] += value_of(steps[i], "loss") / static_cast<double>(end - begin);
  }
  return means;
}

constexpr size_t kScale = 9;  // columns of the axis

std::vector<std::string> chart(const std::vector<Record>& steps, int width, int rows, bool utf8) {
  const std::vector<double> means = curve(steps, static_cast<size_t>(std::max(1, width - static_cast<int>(kScale))));
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double m : means)
    if (std::isfinite(m)) low = std::min(low, m), high = std::max(high, m);
  if (!(low <= high)) return {};
  const double span = high > low ? high - low : 1;
  static constexpr std::array<const char*, 9> kEighths{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<std::string> lines;
  for (int r = rows - 1; r >= 0; --r) {
    std::string line = r == rows - 1 ? fmt::format("{:>8.3f} ", high) : r == 0 ? fmt::format("{:>8.3f} ", low) : std::string(kScale, ' ');
    for (const double m : means) {
      // The lowest value still shows one eighth.
      const double eighths = std::isfinite(m) ? 1 + (m - low) / span * (rows * 8 - 1) - r * 8 : 0;
      const auto part = static_cast<size_t>(std::clamp(std::lround(eighths), 0L, 8L));
      line += utf8 ? kEighths[part] : part >= 4 || (r == 0 && part > 0) ? "#" : " ";
    }
    lines.push_back(line);
  }
  return lines;
}

std::string numbers(const Record& record, std::initializer_list<std::string_view> names) {
  std::string line;
  for (const std::string_view name : names) {
    const double value = value_of(record, name);
    if (std::isfinite(value)) line += fmt::format("  {} {:.4g}", name, value);
  }
  return line;
}

std::string phases(const Record& record) {
  const double step = value_of(record, "step_ms");
  if (!(step > 0)) return {};
  std::string line = fmt::format("step      {:.4g} ms:", step);
  for (size_t p = 0; p < kPhases; ++p) {
    const std::string_view name = name_of(static_cast<Phase>(p));
    const double ms = value_of(record, std::string(name) + "_ms");
    if (std::isfinite(ms)) line += fmt::format("{} {} {:.1f} %", p > 0 ? "," : "", name, ms / step * 100);
  }
  return line;
}

std::string state_text(const RunView& v) {
  switch (v.state) {
    case RunView::State::running: return fmt::format("running, process {}", v.info.pid);
    case RunView::State::finished: return "finished";
    case RunView::State::stopped: return fmt::format("not finished, no process {} on this machine", v.info.pid);
  }
  return {};
}

/// Cut to so many columns; what is not ASCII here takes one column a code point.
std::string cut(const std::string& line, int width) {
  int columns = 0;
  size_t i = 0;
  for (; i < line.size(); ++i) {
    if ((static_cast<unsigned char>(line[i]) & 0xC0u) == 0x80u) continue;
    if (columns++ == width) break;
  }
  return line.substr(0, i);
}

}  // namespace

void write_run_info(const std::string& folder, const RunInfo& i) {
  const json document{{"task", i.task},
                      {"model", i.model},
                      {"data", i.data},
                      {"host", i.host.empty() ? this_host() : i.host},
                      {"isa", i.isa},
                      {"precision", i.precision},
                      {"pid", i.pid},
                      {"total_steps", i.total_steps},
                      {"first_step", i.first_step},
                      {"steps_per_epoch", i.steps_per_epoch},
                      {"threads", i.threads},
                      {"parameters", i.parameters},
                      {"started", i.started}};
  storage::write_file_atomic(folder + "/" + kFile, document.dump(1, ' ', false, json::error_handler_t::replace) + "\n", "run info");
}

RunInfo read_run_info(const std::string& folder) {
  const std::string path = folder + "/" + kFile;
  if (!storage::is_folder(folder)) throw Error(ErrorKind::not_found, "{}: no such folder; give the --output_dir of a run", folder);
  if (!storage::is_file(path)) throw Error(ErrorKind::not_found, "{} holds no run of muster train: it has no {}", folder, kFile);
  RunInfo i;
  try {
    const json j = json::parse(storage::read_file(path));
    i.task = j.at("task"), i.model = j.at("model"), i.data = j.at("data"), i.host = j.at("host"), i.isa = j.at("isa");
    i.precision = j.at("precision"), i.pid = j.at("pid"), i.total_steps = j.at("total_steps"), i.first_step = j.at("first_step");
    i.steps_per_epoch = j.at("steps_per_epoch"), i.threads = j.at("threads"), i.parameters = j.at("parameters"),
    i.started = j.at("started");
  } catch (const json::exception& e) {
    throw Error(ErrorKind::corrupt, "{}: {}", path, e.what());
  }
  return i;
}

RunView read_run(const std::string& folder, double now) {
  RunView v;
  v.info = read_run_info(folder);
  const std::string log = folder + "/metrics.jsonl";
  for (Record& record : read_records(log)) {
    if (!std::isnan(value_of(record, "eval_loss")))
      v.evaluation = std::move(record);
    else if (!std::isnan(value_of(record, "loss")))
      v.steps.push_back(std::move(record));
  }
  v.last_line_age = std::max(0.0, now - modified(log));
  const std::vector<std::string> checkpoints = list_checkpoints(folder);
  if (!checkpoints.empty()) {
    v.checkpoint = checkpoints.front().substr(checkpoints.front().find_last_of('/') + 1);
    v.checkpoint_age = std::max(0.0, now - modified(checkpoints.front() + "/muster_state.json"));
  }
  // The weights are written last of all.
  const bool finished = storage::has_weights(folder) && storage::is_file(folder + "/train_results.json") &&
                        modified(folder + "/train_results.json") >= v.info.started;
  v.state = finished ? RunView::State::finished : alive(v.info) ? RunView::State::running : RunView::State::stopped;
  return v;
}

double seconds_left(const RunView& v) {
  if (v.steps.empty() || v.state != RunView::State::running) return -1;
  const double step_ms = value_of(v.steps.back(), "step_ms");
  return std::isfinite(step_ms) ? static_cast<double>(v.info.total_steps - v.steps.back().step) * step_ms / 1e3 : -1;
}

std::string render(const RunView& v, int width, int height, bool utf8) {
  std::vector<std::string> above, below;
  above.push_back(fmt::format("{}  {}", v.info.task, state_text(v)));
  const int64_t step = v.steps.empty() ? v.info.first_step : v.steps.back().step;
  std::string line = fmt::format("step {}/{}", step, v.info.total_steps);
  if (v.info.steps_per_epoch > 0)
    line += fmt::format("  epoch {:.2f}", static_cast<double>(step) / static_cast<double>(v.info.steps_per_epoch));
  const double left = seconds_left(v);
  if (v.state == RunView::State::running && left >= 0) line += fmt::format("  {} left", duration_text(left));
  if (!v.steps.empty()) line += fmt::format("  last line {} ago", duration_text(v.last_line_age));
  above.push_back(line);
  if (v.steps.empty()) {
    below.emplace_back("no log line yet (--logging_steps)");
  } else {
    const Record& last = v.steps.back();
    below.push_back("now     " + numbers(last, {"loss", "mlm_loss", "nsp_loss", "mlm_accuracy", "grad_norm", "learning_rate"}));
    if (v.evaluation) {
      std::string evaluation = fmt::format("eval      step {}", v.evaluation->step);
      for (const auto& [name, value] : v.evaluation->values)
        if (name.starts_with("eval_") && !name.ends_with("_per_second") && name != "eval_runtime")
          evaluation += fmt::format("  {} {:.4g}", name.substr(5), value);
      below.push_back(evaluation);
    }
    below.push_back("rates   " + numbers(last, {"samples_per_second", "tokens_per_second", "tflops", "mfu"}));
    if (const std::string text = phases(last); !text.empty()) below.push_back(text);
    below.push_back(fmt::format("cores     {:.0f} % of {}  memory {:.0f} MB", value_of(last, "cpu_percent"), v.info.threads,
                                value_of(last, "memory_mb")));
  }
  below.push_back("saved     " +
                  (v.checkpoint.empty() ? "no checkpoint yet" : fmt::format("{}, {} ago", v.checkpoint, duration_text(v.checkpoint_age))));
  below.push_back(fmt::format("run       {}, {:.1f} M parameters, {}, {} threads, {}", v.info.model,
                              static_cast<double>(v.info.parameters) / 1e6, v.info.precision, v.info.threads, v.info.isa));
  const int room = std::min(12, height - static_cast<int>(above.size() + below.size()));
  if (room >= 3 && !v.steps.empty())
    for (std::string& row : chart(v.steps, width, room, utf8)) above.push_back(std::move(row));
  std::string text;
  int lines = 0;
  for (const auto* part : {&above, &below})
    for (const std::string& row : *part)
      if (lines++ < height) text += cut(row, width) + "\n";
  return text;
}

std::string to_json(const RunView& v) {
  const auto record = [](const Record& r) {
    nlohmann::ordered_json j{{"step", r.step}, {"epoch", r.epoch}};
    for (const auto& [name, value] : r.values) j[name] = value;
    return j;
  };
  static constexpr std::array<const char*, 3> kStates{"running", "finished", "stopped"};
  nlohmann::ordered_json j{{"state", kStates[static_cast<size_t>(v.state)]},
                           {"task", v.info.task},
                           {"model", v.info.model},
                           {"step", v.steps.empty() ? v.info.first_step : v.steps.back().step},
                           {"total_steps", v.info.total_steps},
                           {"seconds_left", seconds_left(v)},
                           {"checkpoint", v.checkpoint},
                           {"checkpoint_age", v.checkpoint_age}};
  j["last"] = v.steps.empty() ? nlohmann::ordered_json() : record(v.steps.back());
  j["evaluation"] = v.evaluation ? record(*v.evaluation) : nlohmann::ordered_json();
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace muster::train
