// A run as someone who watches it sees it: read from the run's folder alone, so that it works while the run goes on, after it, and from
// another machine that shares the disk. `muster top` shows it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/record.h"

namespace muster::train {

/// What a run says of itself when it starts: run.json.
struct RunInfo {
  std::string task, model, data, host, isa, precision;
  int64_t pid = 0, total_steps = 0, first_step = 0, steps_per_epoch = 0, threads = 1, parameters = 0;
  double started = 0;  // seconds since 1970
};
/// Writes folder/run.json, whole or not at all. Throws Error(io).
void write_run_info(const std::string& folder, const RunInfo& info);
/// Throws Error(not_found) when the folder holds no run, Error(corrupt).
RunInfo read_run_info(const std::string& folder);

struct RunView {
  RunInfo info;
  enum class State { running, finished, stopped } state = State::stopped;  // stopped: not finished, and no process of it here
  std::vector<Record> steps;                                               // lines with a loss, in order
  std::optional<Record> evaluation;                                        // the last one
  std::string checkpoint;                                                  // newest, its name; empty: none
  double checkpoint_age = 0;                                               // seconds
  double last_line_age = 0;                                                // seconds since metrics.jsonl grew
};

/// `now`: seconds since 1970. A line that is being written is left out. Throws like read_run_info.
RunView read_run(const std::string& folder, double now);

/// Estimated seconds to the end by the last step_ms, below 0: not known.
double seconds_left(const RunView& view);

/// At most `height` lines of at most `width` columns. utf8: bars of eighths, else '#'.
std::string render(const RunView& view, int width, int height, bool utf8);
/// The same as one line of JSON.
std::string to_json(const RunView& view);

}  // namespace muster::train
