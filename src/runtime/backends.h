// The choice of backend, explicit.
#pragma once
#include <memory>
#include <string_view>

#include "backend/backend.h"
#include "backend/cpu/code.h"
#include "backend/cpu/tuning.h"
#include "core/cpu.h"

namespace muster::runtime {

/// "cpu" or "ref". `tuning` and `code` (of the regions of what it will compile): of cpu only. Throws Error(usage) for another name.
std::unique_ptr<backend::Backend> make_backend(std::string_view name, Isa isa, const cpu::Tuning& tuning = {},
                                               std::shared_ptr<const cpu::Code> code = nullptr);

/// The level to run at: resolve_isa of this machine, and avx512 instead of amx (with a warning) when AMX fails its self-test.
/// The processor is asked once per process.
Isa machine_isa();

}  // namespace muster::runtime
