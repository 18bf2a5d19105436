// What a user sees during a run: on a terminal one line that is rewritten (bar, loss, learning rate, tokens/s, time left) with log lines
// above it; elsewhere plain lines only. All on standard error.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "train/record.h"

namespace muster::train {

/// What the bar shows.
struct ProgressView {
  int64_t step = 0, total_steps = 0;
  double loss = 0, learning_rate = 0;
  double tokens_per_second = 0;
  double seconds = 0;       // of this session
  double seconds_left = 0;  // below 0: not known yet
};

/// One line of at most `width` columns, without line end: what does not fit is left out from the right, the bar shrinks first.
std::string progress_line(const ProgressView& view, int width);

/// "1:02:03", "2:03", "0:07"
std::string duration_text(double seconds);

/// "step 50/408  epoch 0.49  loss 1.2345  grad_norm 2.31  lr 9.8e-05": a record as a line.
std::string record_line(const Record& record, int64_t total_steps);

class Progress {
 public:
  /// Steps done before this session do not count for rates and time left.
  Progress(int64_t first_step, int64_t total_steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// After each step; redraws at most ten times a second.
  void update(int64_t step, double loss, double learning_rate, int64_t tokens);
  /// While something else than steps goes on ("evaluating"); shown in place of the bar.
  void status(std::string_view text);
  /// A log line, above the bar.
  void line(std::string_view text);
  /// Removes the bar.
  void finish();

 private:
  void draw();
  void write(std::string_view text) const;
  [[nodiscard]] double seconds_since_start() const;

  bool terminal_;
  bool drawn_ = false;
  int64_t first_step_, tokens_ = 0;
  ProgressView view_;
  std::chrono::steady_clock::time_point start_, last_draw_;
};

}  // namespace muster::train
