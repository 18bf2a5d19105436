// A short measurement of this machine's matrix products: which blocks suit its caches, and what each kind of math reaches. Blocks change
// times, never bits.
#pragma once
#include "backend/cpu/matmul.h"

namespace muster::cpu {

struct Tuning {
  Blocking f32, bf16;
  double f32_gflops = 0, bf16_gflops = 0;  // of a product on one core; 0: not measured
};

/// Takes about a tenth of a second. A block other than the one computed from the caches is taken only when it is clearly faster.
Tuning measure_tuning(Isa isa);

}  // namespace muster::cpu
