// Places the temporary values of a program in one arena: values that are never alive together share bytes.
#pragma once
#include <cstdint>
#include <vector>

namespace muster::cpu {

/// One temporary: alive from the step that writes it to the last step that reads it, both included.
struct Lifetime {
  int32_t first = 0, last = 0;
  int64_t bytes = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // of each lifetime, multiples of 64
  int64_t total = 0;
};

/// Largest first, each at the lowest offset that is free during its life (Pisarchyk and Lee 2020, "greedy by size").
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes);

}  // namespace muster::cpu
