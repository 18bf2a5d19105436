// The CPU backend: own kernels for AVX2, AVX-512 and AMX, packed weights, one arena of temporaries.
#pragma once
#include <memory>

#include "backend/backend.h"
#include "core/cpu.h"

namespace muster::cpu {

/// `isa` must be a level that this machine has (core/cpu.h resolve_isa).
std::unique_ptr<backend::Backend> make_backend(Isa isa);

}  // namespace muster::cpu
