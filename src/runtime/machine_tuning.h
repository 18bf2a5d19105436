// The tuning of this machine's products (backend/cpu/tuning.h), measured once and kept beside the compiled programs.
#pragma once
#include <string>

#include "backend/cpu/tuning.h"

namespace muster::runtime {

struct MachineTuning {
  cpu::Tuning tuning;  // the defaults when nothing is known
  std::string how;     // "measured now, kept in FILE", "kept in FILE", or why nothing was measured
};

/// Of a core of this machine at `isa`: from `folder`, else measured now and kept there. Where it cannot be kept (no folder, a
/// read-only one) nothing is measured: a start would pay for it each time.
MachineTuning machine_tuning(Isa isa, const std::string& folder);

}  // namespace muster::runtime
