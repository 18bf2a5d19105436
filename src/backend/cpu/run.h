// One run of a program: where each value is and how large, for the steps. Internal to program.cpp and steps.cpp.
#pragma once
#include <vector>

#include "backend/cpu/program.h"

namespace muster::cpu {

struct Program::Run {
  const backend::Bindings& io;
  graph::SymbolValues symbols;
  std::vector<std::vector<void*>> pointers;  // [node][output]

  [[nodiscard]] void* at(graph::Value v) const { return pointers[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]; }
  template <typename T>
  [[nodiscard]] T* as(graph::Value v) const {
    return static_cast<T*>(at(v));
  }
};

}  // namespace muster::cpu
