// --trace: what the first steps of a session did, for Perfetto and Chrome: their phases, and the operations of their programs.
#pragma once
#include <string>
#include <vector>

#include "runtime/profile.h"
#include "train/meter.h"

namespace muster::train {

class StepTrace {
 public:
  /// Records `steps` steps after the first one (which grows buffers) into `path`, written when they are done. Throws Error(io) when the
  /// file cannot be written; later that is a warning. The sessions outlive the object.
  StepTrace(std::string path, int64_t steps, runtime::Session& compute, runtime::Session& update);

  using Clock = runtime::Trace::Clock;
  /// Around each step of the run, counted from 1; what phase() is told in between belongs to it.
  void begin_step(int64_t step);
  void phase(Phase phase, Clock::time_point begin, Clock::time_point end);
  void end_step();
  /// Writes what there is, when it is not written yet: of a run with fewer steps.
  void finish();

 private:
  std::string path_;
  int64_t steps_, step_ = 0, seen_ = 0;
  bool recording_ = false, written_ = false;
  runtime::Session &compute_, &update_;
  std::vector<backend::StepTime> computed_, updated_;
  Clock::time_point begin_;
  runtime::Trace trace_;
};

}  // namespace muster::train
