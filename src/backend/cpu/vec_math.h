// exp, log, erf, tanh, sqrt of f32 vectors: at most 2 ulp from the correctly rounded value over all of f32, infinities, NaN and denormal
// results included (measured in tests/backend/cpu/vec_math_test.cpp). Lanes are independent and tails run the same polynomial
// through load_part/store_part, so a value's result does not depend on where it stands.
// Source of the polynomials: N. Juffa's public minimax fits (NVIDIA forums, Stack Overflow 47097460, 39587752, 35148198), checked here.
#pragma once
#include "backend/cpu/vec.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

inline VecU bits_of(VecF x) { return reinterpret_cast<VecU>(x); }
inline VecF float_of(VecU x) { return reinterpret_cast<VecF>(x); }
inline VecF abs(VecF x) { return float_of(bits_of(x) & 0x7fffffffu); }
/// |x| with the sign of `sign`.
inline VecF copy_sign(VecF x, VecF sign) { return float_of((bits_of(x) & 0x7fffffffu) | (bits_of(sign) & 0x80000000u)); }
/// NaN in either operand gives NaN.
inline VecF maximum(VecF a, VecF b) {
  const VecF larger = a > b ? a : b;
  return a == a ? larger : a;
}
inline VecF sqrt(VecF x) {
  VecF y;
  for (int i = 0; i < kLanes; ++i) y[i] = __builtin_sqrtf(x[i]);
  return y;
}

/// exp(x) for x in [-87, 88] without the care for overflow and denormals; garbage outside.
inline VecF exp_normal(VecF x) {
  const VecF shifted = fma(x, splat(1.44269502f), splat(12582912.0f));  // 1.5 * 2^23: the integer lands in the low bits
  const VecF n = shifted - 12582912.0f;
  VecF r = fma(n, splat(-6.93145752e-1f), x);
  r = fma(n, splat(-1.42860677e-6f), r);
  VecF p = splat(1.37805939e-3f);
  p = fma(p, r, splat(8.37312452e-3f));
  p = fma(p, r, splat(4.16695364e-2f));
  p = fma(p, r, splat(1.66664720e-1f));
  p = fma(p, r, splat(4.99999851e-1f));
  p = fma(p, r, splat(1.0f));
  p = fma(p, r, splat(1.0f));
  return float_of(bits_of(p) + (bits_of(shifted) << 23));  // the rest of 1.5 * 2^23 is shifted out
}

/// exp(x) for x <= 88, as far as f32 is normal: 0 below -87; NaN stays NaN. For terms of a softmax, the largest of which is 1.
inline VecF exp_flushed(VecF x) {
  const VecU keep = reinterpret_cast<VecU>(~(x < splat(-87.0f)));
  return float_of(bits_of(exp_normal(x)) & keep);
}

inline VecF exp(VecF x) {
  const VecF low = x < splat(-104.0f) ? splat(-104.0f) : x;  // rounds to 0 below
  const VecF in = low > splat(89.0f) ? splat(89.0f) : low;   // infinity above; NaN passes both
  const VecF shifted = fma(in, splat(1.44269502f), splat(12582912.0f));
  const VecF n = shifted - 12582912.0f;
  VecF r = fma(n, splat(-6.93145752e-1f), in);
  r = fma(n, splat(-1.42860677e-6f), r);
  VecF p = splat(1.37805939e-3f);
  p = fma(p, r, splat(8.37312452e-3f));
  p = fma(p, r, splat(4.16695364e-2f));
  p = fma(p, r, splat(1.66664720e-1f));
  p = fma(p, r, splat(4.99999851e-1f));
  p = fma(p, r, splat(1.0f));
  p = fma(p, r, splat(1.0f));
  // 2^n in two factors: n reaches 128 and -150, beyond what one exponent field holds.
  const VecI i = reinterpret_cast<VecI>(bits_of(shifted) - 0x4b400000u), half = i >> 1;
  return p * float_of(reinterpret_cast<VecU>(half + 127) << 23) * float_of(reinterpret_cast<VecU>(i - half + 127) << 23);
}

/// log(0) = -inf, log(negative) = NaN.
inline VecF log(VecF x) {
  const auto small = x < splat(1.17549435e-38f);
  const VecF a = small ? x * 8388608.0f : x;
  const VecU e = (bits_of(a) - 0x3f2aaaabu) & 0xff800000u;  // a = m * 2^e with m in [2/3, 4/3)
  const VecF f = float_of(bits_of(a) - e) - 1.0f, s = f * f;
  const VecF i = fma(__builtin_convertvector(reinterpret_cast<VecI>(e), VecF), splat(1.19209290e-7f), small ? splat(-23.0f) : splat(0.0f));
  VecF r = splat(-0.130310059f), t = splat(0.140869141f);
  r = fma(r, s, splat(-0.121483512f));
  t = fma(t, s, splat(0.139814854f));
  r = fma(r, s, splat(-0.166846126f));
  t = fma(t, s, splat(0.200120345f));
  r = fma(r, s, splat(-0.249996200f));
  r = fma(t, f, r);
  r = fma(r, f, splat(0.333331972f));
  r = fma(r, f, splat(-0.5f));
  r = fma(r, s, f);
  r = fma(i, splat(0.693147182f), r);
  const VecF positive = x < splat(__builtin_inff()) ? r : x + x;  // +inf and NaN are their own results
  const VecF negative = x < splat(0.0f) ? splat(__builtin_nanf("")) : splat(-__builtin_inff());
  return x <= splat(0.0f) ? negative : positive;
}

inline VecF erf(VecF x) {
  const VecF magnitude = abs(x), t = magnitude > splat(4.0f) ? splat(4.0f) : magnitude, s = t * t;  // erf(4) rounds to 1
  // Near zero: an odd polynomial.
  VecF near = splat(-5.96761703e-4f);
  near = fma(near, s, splat(4.99119423e-3f));
  near = fma(near, s, splat(-2.67681349e-2f));
  near = fma(near, s, splat(1.12819925e-1f));
  near = fma(near, s, splat(-3.76125336e-1f));
  near = fma(near, s, splat(1.28379166e-1f));
  near = fma(near, t, t);
  // Farther: 1 - exp(polynomial).
  VecF r = fma(splat(-1.72853470e-5f), t, splat(3.83197126e-4f));
  const VecF u = fma(splat(-3.88396438e-3f), t, splat(2.42546219e-2f));
  r = fma(r, s, u);
  r = fma(r, t, splat(-1.06777877e-1f));
  r = fma(r, t, splat(-6.34846687e-1f));
  r = fma(r, t, splat(-1.28717512e-1f));
  r = fma(r, t, -t);
  const VecF far = 1.0f - exp_normal(r);
  return copy_sign(t > splat(0.927734375f) ? far : near, x);
}

inline VecF tanh(VecF x) {
  const VecF magnitude = abs(x), t = magnitude > splat(10.0f) ? splat(10.0f) : magnitude, s = t * t;  // tanh(10) rounds to 1
  VecF near = splat(1.57394409e-2f);
  near = fma(near, s, splat(-5.23025580e-2f));
  near = fma(near, s, splat(1.33152470e-1f));
  near = fma(near, s, splat(-3.33327681e-1f));
  near = fma(near * s, t, t);
  const VecF far = 1.0f - 2.0f / (exp_normal(t + t) + 1.0f);
  return copy_sign(t > splat(0.55f) ? far : near, x);
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
