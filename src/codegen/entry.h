// The one function that the loadable module offers; runtime/codegen.cpp looks it up by name.
#pragma once
#include <cstddef>
#include <cstdint>

#include "backend/cpu/loop_nest.h"
#include "core/cpu.h"

namespace muster::codegen {

/// Raised with every change of the lowering, of LoopNest or of RegionCall: part of the compile cache's keys, and both sides compare it.
inline constexpr uint32_t kVersion = 1;

struct Request {
  uint32_t version = kVersion;
  const cpu::LoopNest* nests = nullptr;
  size_t count = 0;
  Isa isa = Isa::avx2;
  void* sink = nullptr;
  void (*object)(void* sink, const std::byte* bytes, size_t size) = nullptr;  // called once on success
  void (*failed)(void* sink, const char* words) = nullptr;                    // or this
};
using Entry = void (*)(const Request*);
inline constexpr const char* kEntryName = "muster_codegen";

}  // namespace muster::codegen
