// From loop nests to one shared object in memory: LLVM for the machine code, lld (in process, through anonymous files) for linking.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/loop_nest.h"
#include "core/cpu.h"

namespace muster::codegen {

/// The bytes of a shared object that has one function per nest. The same nests and level give the same bytes.
/// Throws std::runtime_error with LLVM's or lld's words.
std::vector<std::byte> make_object(std::span<const cpu::LoopNest> nests, Isa isa);

}  // namespace muster::codegen
