// What the steps since the last log line cost: time by phase, rates, cores, memory.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "train/objective.h"

namespace muster::train {

/// Where a step's time goes. data: batches made or waited for; compute: forward and backward; clip: the norm; update: the optimizer;
/// checkpoint: waiting for one. Evaluations are no part of a step.
enum class Phase : uint8_t { data, compute, clip, update, checkpoint };
inline constexpr size_t kPhases = 5;
std::string_view name_of(Phase phase);

class Meter {
 public:
  /// peak_tflops: what the machine could do, 0 when nobody said.
  Meter(int threads, double peak_tflops);

  void add(Phase phase, double seconds) { seconds_[static_cast<size_t>(phase)] += seconds; }
  /// Time that is none of the steps' (an evaluation).
  void leave_out(double seconds) { left_out_ += seconds; }
  void count(const StepOutcome& outcome);

  /// Of the steps since the last call, means: samples_per_second, tokens_per_second, step_ms, PHASE_ms, tflops (models/flops.h), mfu (share
  /// of the peak, when there is one), cpu_percent (100: all threads busy), memory_mb (resident now). Empty without steps.
  Scalars take();

 private:
  using Clock = std::chrono::steady_clock;
  int threads_;
  double peak_tflops_;
  std::array<double, kPhases> seconds_{};
  double left_out_ = 0, flops_ = 0;
  int64_t steps_ = 0, tokens_ = 0, samples_ = 0;
  Clock::time_point since_ = Clock::now();
  double cpu_since_;
};

/// Whether a value of a record is one of Meter's.
bool is_meter_value(std::string_view name);

/// Resident memory of the process in bytes, now and at most.
struct MemoryUse {
  double now = 0, peak = 0;
};
MemoryUse memory_use();

}  // namespace muster::train
