#include "train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "core/log.h"
#include "train/meter.h"

namespace muster::train {
namespace {

/// Columns of the terminal behind standard error; asked anew each time, so a resized window is followed.
int terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string count_text(double value) {
  if (value >= 1e6) return fmt::format("{:.1f}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.0f}k", value / 1e3);
  if (value >= 1e3) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{:.0f}", value);
}

}  // namespace

std::string duration_text(double seconds) {
  const auto s = static_cast<int64_t>(std::clamp(seconds, 0.0, 3.6e9));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string progress_line(const ProgressView& v, int width) {
  const double done = v.total_steps > 0 ? std::clamp(static_cast<double>(v.step) / static_cast<double>(v.total_steps), 0.0, 1.0) : 0.0;
  std::string line = fmt::format("{:3.0f}%", std::floor(done * 100));
  const std::string steps = fmt::format(" {}/{}", v.step, v.total_steps);
  const std::vector<std::string> parts{
      fmt::format("  loss {:.4f}", v.loss), v.seconds_left >= 0 ? fmt::format("  {} left", duration_text(v.seconds_left)) : "",
      fmt::format("  {} tokens/s", count_text(v.tokens_per_second)), fmt::format("  lr {:.2e}", v.learning_rate)};
  const int room = width - static_cast<int>(line.size() + steps.size());
  if (room < 0) return line.substr(0, static_cast<size_t>(std::max(0, width)));
  std::string rest = steps;
  int left = room;
  for (const std::string& part : parts) {
    if (static_cast<int>(part.size()) > left) break;
    rest += part;
    left -= static_cast<int>(part.size());
  }
  const int bar = std::min(left - 3, 30);  // " [" and "]"
  if (bar >= 5) {
    const int full = static_cast<int>(std::floor(done * bar));
    line += " [" + std::string(static_cast<size_t>(full), '#') + std::string(static_cast<size_t>(bar - full), '.') + "]";
  }
  return line + rest;
}

std::string record_line(const Record& record, int64_t total_steps) {
  std::string line = fmt::format("step {}/{}  epoch {:.2f}", record.step, total_steps, record.epoch);
  for (const auto& [name, value] : record.values) {
    if (is_meter_value(name) && name != "tokens_per_second" && name != "mfu") continue;  // in the files, and in muster top
    if (name == "learning_rate")
      line += fmt::format("  lr {:.3g}", value);
    else if (name.ends_with("loss"))
      line += fmt::format("  {} {:.4f}", name, value);
    else
      line += fmt::format("  {} {:.4g}", name, value);
  }
  return line;
}

Progress::Progress(int64_t first_step, int64_t total_steps)
    : terminal_(::isatty(STDERR_FILENO) == 1 && log_level() <= LogLevel::info),
      first_step_(first_step),
      start_(std::chrono::steady_clock::now()) {
  view_.step = first_step;
  view_.total_steps = total_steps;
}

Progress::~Progress() { finish(); }

void Progress::update(int64_t step, double loss, double learning_rate, int64_t tokens) {
  tokens_ += tokens;
  view_.seconds = seconds_since_start();
  view_.step = step, view_.loss = loss, view_.learning_rate = learning_rate;
  view_.tokens_per_second = view_.seconds > 0 ? static_cast<double>(tokens_) / view_.seconds : 0;
  const int64_t done = step - first_step_;
  view_.seconds_left = done > 0 ? view_.seconds / static_cast<double>(done) * static_cast<double>(view_.total_steps - step) : -1;
  const auto now = std::chrono::steady_clock::now();
  if (terminal_ && (!drawn_ || now - last_draw_ >= std::chrono::milliseconds(100))) draw();
}

void Progress::status(std::string_view text) {
  if (!terminal_) return;
  std::string line = progress_line(view_, terminal_width() - 1);
  line = fmt::format("{} {}", line.substr(0, 4), text);
  write("\r\x1b[K" + line.substr(0, static_cast<size_t>(std::max(0, terminal_width() - 1))));
  drawn_ = true;
}

void Progress::line(std::string_view text) {
  if (drawn_) write("\r\x1b[K");
  log_info("{}", text);
  if (drawn_) draw();
}

void Progress::finish() {
  if (drawn_) write("\r\x1b[K");
  drawn_ = false;
}

void Progress::draw() {
  // One column is left free: a full line would wrap on some terminals.
  write("\r\x1b[K" + progress_line(view_, terminal_width() - 1));
  last_draw_ = std::chrono::steady_clock::now();
  drawn_ = true;
}

void Progress::write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;  // a bar is not worth an error
    text.remove_prefix(static_cast<size_t>(n));
  }
}

double Progress::seconds_since_start() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

}  // namespace muster::train
