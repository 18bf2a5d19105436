#include "train/meter.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace muster::train {
namespace {

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

}  // namespace

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::data: return "data";
    case Phase::compute: return "compute";
    case Phase::clip: return "clip";
    case Phase::update: return "update";
    case Phase::checkpoint: return "checkpoint";
  }
  return "";
}

Meter::Meter(int threads, double peak_tflops) : threads_(threads), peak_tflops_(peak_tflops), cpu_since_(cpu_seconds()) {}

void Meter::count(const StepOutcome& outcome) {
  ++steps_;
  tokens_ += outcome.tokens, samples_ += outcome.samples, flops_ += outcome.flops;
}

Scalars Meter::take() {
  if (steps_ == 0) return {};
  const Clock::time_point now = Clock::now();
  const double cpu = cpu_seconds(), wall = std::max(1e-9, std::chrono::duration<double>(now - since_).count());
  const double seconds = std::max(1e-9, wall - left_out_);
  const auto steps = static_cast<double>(steps_);
  Scalars values{{"samples_per_second", static_cast<double>(samples_) / seconds},
                 {"tokens_per_second", static_cast<double>(tokens_) / seconds},
                 {"step_ms", seconds / steps * 1e3}};
  for (size_t p = 0; p < kPhases; ++p) values.emplace_back(std::string(name_of(static_cast<Phase>(p))) + "_ms", seconds_[p] / steps * 1e3);
  values.emplace_back("tflops", flops_ / seconds / 1e12);
  if (peak_tflops_ > 0) values.emplace_back("mfu", flops_ / seconds / 1e12 / peak_tflops_);
  values.emplace_back("cpu_percent", (cpu - cpu_since_) / wall / threads_ * 100);
  values.emplace_back("memory_mb", memory_use().now / 1e6);
  seconds_ = {};
  left_out_ = flops_ = 0;
  steps_ = tokens_ = samples_ = 0;
  since_ = now, cpu_since_ = cpu;
  return values;
}

bool is_meter_value(std::string_view name) {
  for (const std::string_view known : {"samples_per_second", "tokens_per_second", "step_ms", "tflops", "mfu", "cpu_percent", "memory_mb"})
    if (name == known) return true;
  for (size_t p = 0; p < kPhases; ++p)
    if (name == std::string(name_of(static_cast<Phase>(p))) + "_ms") return true;
  return false;
}

MemoryUse memory_use() {
  MemoryUse use;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  use.peak = static_cast<double>(usage.ru_maxrss) * 1024;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    unsigned long size = 0, resident = 0;
    if (std::fscanf(file, "%lu %lu", &size, &resident) == 2)
      use.now = static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
    std::fclose(file);
  }
  return use;
}

}  // namespace muster::train
