#include "backend/cpu/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace muster::cpu {

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes) {
  MemoryPlan plan{std::vector<int64_t>(lifetimes.size()), 0};
  std::vector<size_t> order(lifetimes.size()), placed;  // placed: sorted by offset
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  for (const size_t i : order) {
    const Lifetime& life = lifetimes[i];
    const int64_t bytes = (life.bytes + 63) / 64 * 64;
    int64_t at = 0;
    for (const size_t j : placed) {
      const Lifetime& other = lifetimes[j];
      if (other.last < life.first || other.first > life.last) continue;
      if (plan.offsets[j] >= at + bytes) break;  // the gap before it is wide enough
      at = std::max(at, plan.offsets[j] + (other.bytes + 63) / 64 * 64);
    }
    plan.offsets[i] = at;
    plan.total = std::max(plan.total, at + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), at, [&](int64_t offset, size_t j) { return offset < plan.offsets[j]; }),
                  i);
  }
  return plan;
}

}  // namespace muster::cpu
