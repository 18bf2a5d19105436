// A square of vectors turned in registers: what packing does to an operand whose lines run along K.
#pragma once
#include <utility>

#include "backend/cpu/vec.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

/// v[i][j] becomes v[j][i], by exchanging ever larger off-diagonal squares: log2(kLanes) rounds of two-operand shuffles.
template <typename Vec>
inline void transpose(Vec (&v)[kLanes]) {
  const auto round = [&]<int kHalf>(std::integral_constant<int, kHalf>) {
    VecI low, high;  // lane j of the pair (a, b): a's lanes where bit kHalf of j is clear, b's shifted in where it is set
    for (int j = 0; j < kLanes; ++j) {
      low[j] = (j & kHalf) == 0 ? j : kLanes + (j ^ kHalf);
      high[j] = (j & kHalf) == 0 ? (j ^ kHalf) : kLanes + j;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if ((i & kHalf) != 0) continue;
      const Vec a = v[i], b = v[i + kHalf];
      v[i] = __builtin_shuffle(a, b, low);
      v[i + kHalf] = __builtin_shuffle(a, b, high);
    }
  };
  if constexpr (kLanes == 16) round(std::integral_constant<int, 8>{});
  round(std::integral_constant<int, 4>{});
  round(std::integral_constant<int, 2>{});
  round(std::integral_constant<int, 1>{});
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
