#include "train/step_trace.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace muster::train {

StepTrace::StepTrace(std::string path, int64_t steps, runtime::Session& compute, runtime::Session& update)
    : path_(std::move(path)), steps_(steps), compute_(compute), update_(update) {
  trace_.write(path_);
}

void StepTrace::begin_step(int64_t step) {
  step_ = step;
  recording_ = !written_ && seen_++ > 0;
  if (!recording_) return;
  begin_ = Clock::now();
  compute_.record(&computed_);
  update_.record(&updated_);
}

void StepTrace::phase(Phase phase, Clock::time_point begin, Clock::time_point end) {
  if (recording_ && begin < end) trace_.span(std::string(name_of(phase)), "phases", begin, end);
}

void StepTrace::end_step() {
  if (!recording_) return;
  compute_.record(nullptr);
  update_.record(nullptr);
  trace_.span(fmt::format("step {}", step_), "steps", begin_, Clock::now());
  trace_.steps(compute_.graph(), std::exchange(computed_, {}), "operations");
  trace_.steps(update_.graph(), std::exchange(updated_, {}), "operations");
  if (seen_ > steps_) finish();
}

void StepTrace::finish() {
  if (std::exchange(written_, true)) return;
  try {
    trace_.write(path_);
    log_info("trace of {} steps in {}: open it at ui.perfetto.dev or chrome://tracing", std::min(steps_, seen_ - 1), path_);
  } catch (const Error& e) {
    log_warning("--trace: {}", e.what());
  }
}

}  // namespace muster::train
