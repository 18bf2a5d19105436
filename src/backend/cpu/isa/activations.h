// GELU and its slope, exact and tanh form (Hendrycks and Gimpel 2016), on vectors.
#pragma once
#include "backend/cpu/vec_math.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

/// x * Phi(x).
inline VecF gelu(VecF x) {
  const VecF half = 0.5f * x;
  return fma(half, erf(x * 0.707106781f), half);
}

/// Phi(x) + x * phi(x).
inline VecF gelu_slope(VecF x) {
  const VecF cdf = fma(erf(x * 0.707106781f), splat(0.5f), splat(0.5f)), density = exp_flushed(-0.5f * (x * x)) * 0.398942280f;
  return fma(x, density, cdf);
}

/// tanh(sqrt(2/pi) * (x + 0.044715 x^3)).
inline VecF gelu_tanh_inner(VecF x) { return tanh(0.797884561f * fma(0.044715f * x, x * x, x)); }

inline VecF gelu_tanh(VecF x) {
  const VecF half = 0.5f * x;
  return fma(half, gelu_tanh_inner(x), half);
}

inline VecF gelu_tanh_slope(VecF x) {
  const VecF t = gelu_tanh_inner(x), inner_slope = 0.797884561f * fma(splat(0.134145f), x * x, splat(1.0f));
  return 0.5f * (1.0f + t) + 0.5f * x * ((1.0f - t * t) * inner_slope);
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
