// Machine code for loop nests, made by the loadable module libmuster_codegen (codegen/), which is opened at the first call.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/loop_nest.h"
#include "core/cpu.h"

namespace muster::runtime {

/// Of the lowering: part of the compile cache's keys. Opens nothing.
uint32_t codegen_version();

/// Whether the module can be opened; when not, `why` says what is missing.
bool codegen_available(std::string* why = nullptr);

/// One shared object with a function per nest, for the level given (any, not only this machine's).
/// Throws Error(unsupported) when the module is missing, Error(internal) with the compiler's words.
std::vector<std::byte> generate(std::span<const cpu::LoopNest> nests, Isa isa);

}  // namespace muster::runtime
