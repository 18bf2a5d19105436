// f32 vectors of one instruction-set level. Files under backend/cpu/isa/ are compiled once per level with MUSTER_ISA_NAMESPACE (avx2,
// avx512) and MUSTER_LANES (8, 16) given by CMake; they see this header and nothing wider. One source, so a level that this
// machine lacks differs only in what the compiler emits.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "core/dtype.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

inline constexpr int kLanes = MUSTER_LANES;
using VecF = float __attribute__((vector_size(kLanes * 4)));
using VecI = int32_t __attribute__((vector_size(kLanes * 4)));
using VecU = uint32_t __attribute__((vector_size(kLanes * 4)));
using VecH = uint16_t __attribute__((vector_size(kLanes * 2)));

inline VecF splat(float x) { return x - VecF{}; }  // x - 0 is x, also for -0: no instruction but the broadcast
inline VecF load(const float* p) {
  VecF v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, VecF v) { std::memcpy(p, &v, sizeof v); }
inline VecF load(const BF16* p) {
#if MUSTER_LANES == 8 && defined(__AVX2__)  // one instruction where the generic conversion makes halves
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return reinterpret_cast<VecF>(reinterpret_cast<VecU>(wide) << 16);
#else
  VecH h;
  std::memcpy(&h, p, sizeof h);
  return reinterpret_cast<VecF>(__builtin_convertvector(h, VecU) << 16);
#endif
}
/// v rounded to bf16, nearest even, in the high half of each lane; the low half is zero. NaN stays NaN.
inline VecF round_to_bf16(VecF v) {
  const VecU u = reinterpret_cast<VecU>(v);
  const VecU even = u + 0x7fffu + ((u >> 16) & 1u), quiet = u | 0x400000u;
  return reinterpret_cast<VecF>((v == v ? even : quiet) & 0xffff0000u);
}
/// Stores lanes that round_to_bf16 gave.
inline void store_rounded(BF16* p, VecF v) {
  const VecU u = reinterpret_cast<VecU>(v) >> 16;
#if MUSTER_LANES == 8 && defined(__AVX2__)
  const __m256i w = reinterpret_cast<__m256i>(u);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_packus_epi32(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
#else
  const VecH h = __builtin_convertvector(u, VecH);
  std::memcpy(static_cast<void*>(p), &h, sizeof h);
#endif
}
inline void store_rounded(float* p, VecF v) { store(p, v); }
/// Rounds to nearest even; NaN stays NaN.
inline void store(BF16* p, VecF v) { store_rounded(p, round_to_bf16(v)); }
/// The first n lanes, the rest zero; n in [0, kLanes].
template <typename T>
inline VecF load_part(const T* p, int n) {
  T part[kLanes] = {};
  std::memcpy(part, p, static_cast<size_t>(n) * sizeof(T));
  return load(part);
}
template <typename T>
inline void store_part(T* p, VecF v, int n) {
  T part[kLanes];
  store(part, v);
  std::memcpy(p, part, static_cast<size_t>(n) * sizeof(T));
}
/// a * b + c in one rounding: these files are compiled with contraction on.
inline VecF fma(VecF a, VecF b, VecF c) { return a * b + c; }
/// Sum of the lanes in one fixed order (pairwise halves).
inline float sum(VecF v) {
  float part[kLanes];
  store(part, v);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) part[i] += part[i + width];
  return part[0];
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
