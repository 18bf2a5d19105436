// The CPU backend: own kernels for AVX2, AVX-512 and AMX, packed weights, one arena of temporaries.
#pragma once
#include <memory>

#include "backend/backend.h"
#include "backend/cpu/code.h"
#include "backend/cpu/tuning.h"
#include "core/cpu.h"

namespace muster::cpu {

/// `code`: of the regions of the graph that is to be compiled (schedule.h loop_nests); null when it has none.
/// `tuning`: of this machine's products; the defaults will do.
/// `isa` must be a level that this machine has (core/cpu.h resolve_isa).
std::unique_ptr<backend::Backend> make_backend(Isa isa, const Tuning& tuning, std::shared_ptr<const Code> code);

}  // namespace muster::cpu
