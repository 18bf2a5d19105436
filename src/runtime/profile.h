// Where the time of a program goes: its steps measured, beside what they cost on paper and what the machine could do; and traces of them
// for Perfetto and Chrome.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "graph/cost.h"
#include "runtime/compile.h"

namespace muster::runtime {

/// What this machine reaches with the given threads, measured now in about a quarter of a second.
struct Peaks {
  double gflops = 0;                // f32 multiply-adds in registers
  double gigabytes_per_second = 0;  // a large array read and written in place
};
Peaks measure_peaks(Isa isa, ThreadPool& threads);

/// Steps that do the same on operands of the same types.
struct ProfileRow {
  std::string step;         // what it does
  std::string types;        // of its first result
  int64_t count = 0;        // in one run
  graph::Cost cost;         // of all of them
  double milliseconds = 0;  // median over the runs, of all of them
  /// The least time that the peaks allow, over the time taken.
  [[nodiscard]] double of_limit(const Peaks& peaks) const;
};

/// Rows by falling time. `runs`: records of whole runs of one program on one batch (Session::record).
std::vector<ProfileRow> profile(const graph::Graph& graph, const graph::SymbolValues& symbols,
                                const std::vector<std::vector<backend::StepTime>>& runs);

/// A trace in the Trace Event Format (JSON, complete events "X") that ui.perfetto.dev and chrome://tracing open.
class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  Trace() : start_(Clock::now()) {}
  /// One span on a track; times of the steady clock.
  void span(const std::string& name, const std::string& track, Clock::time_point begin, Clock::time_point end);
  /// The steps of a run.
  void steps(const graph::Graph& graph, const std::vector<backend::StepTime>& run, const std::string& track);
  /// Throws Error(io).
  void write(const std::string& path) const;

 private:
  struct Span {
    std::string name, track;
    double begin_us = 0, us = 0;
  };
  Clock::time_point start_;
  std::vector<Span> spans_;
};

}  // namespace muster::runtime
