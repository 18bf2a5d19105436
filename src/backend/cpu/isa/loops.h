// How every kernel of isa/ walks memory: dispatch on the dtype once per call, chunks with fixed borders, vectors with masked tails.
#pragma once
#include <utility>

#include "backend/cpu/isa/isa.h"
#include "backend/cpu/kernel_support.h"
#include "backend/cpu/vec_math.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

constexpr int64_t kChunkElements = 16384;  // of an element-wise loop: 64 KB of f32, a few microseconds

constexpr int64_t ceil_to(int64_t n, int64_t step) { return (n + step - 1) / step * step; }
constexpr int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/// body(chunk, thread) for each chunk in [0, chunks).
template <typename Body>
void parallel(const Context& context, int64_t chunks, const Body& body) {
  run_chunks(
      context.pool, chunks, [](void* closure, int64_t chunk, int thread) { (*static_cast<const Body*>(closure))(chunk, thread); },
      const_cast<Body*>(&body));
}

/// body(begin, end, thread) for pieces of [0, n) of `step` each, the last one shorter.
template <typename Body>
void parallel_ranges(const Context& context, int64_t n, int64_t step, const Body& body) {
  parallel(context, (n + step - 1) / step, [&](int64_t chunk, int thread) { body(chunk * step, smaller(n, (chunk + 1) * step), thread); });
}

/// Rows of a chunk when a row has `width` elements.
constexpr int64_t rows_per_chunk(int64_t width) { return larger(1, kChunkElements / larger(1, width)); }

/// f(float{}) or f(BF16{}).
template <typename F>
auto with_dtype(DType dtype, const F& f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::bf16) return f(BF16{});
  no_kernel_for(dtype);
}

/// Whole vectors of [0, n) as f(i, kLanes), then the rest as f(i, count): f is inlined twice, with the count known in the first.
template <typename F>
inline void each_vector(int64_t n, const F& f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, kLanes);
  if (i < n) f(i, static_cast<int>(n - i));
}
template <typename T>
inline VecF load_n(const T* p, int count) {
  return count == kLanes ? load(p) : load_part(p, count);
}
template <typename T>
inline void store_n(T* p, VecF v, int count) {
  if (count == kLanes)
    store(p, v);
  else
    store_part(p, v, count);
}

template <int... kLane>
inline VecI lane_numbers(std::integer_sequence<int, kLane...>) {
  return VecI{kLane...};
}
/// Lanes [0, count) of v, `rest` in the others.
inline VecF keep_lanes(VecF v, int count, float rest) {
  if (count == kLanes) return v;
  return lane_numbers(std::make_integer_sequence<int, kLanes>{}) < count ? v : splat(rest);
}

inline float to_float(float x) { return x; }
inline float to_float(BF16 x) { return float_of(VecU{} + (static_cast<uint32_t>(x.bits) << 16))[0]; }
inline void set(float& to, float value) { to = value; }
inline void set(BF16& to, float value) { store_part(&to, splat(value), 1); }

/// v as it will be read back from storage of type T.
inline VecF rounded(VecF v, float) { return v; }
inline VecF rounded(VecF v, BF16) { return round_to_bf16(v); }

/// Largest lane; NaN lanes may be lost.
inline float max_lane(VecF v) {
  float part[kLanes];
  store(part, v);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) part[i] = part[i] > part[i + width] ? part[i] : part[i + width];
  return part[0];
}

/// Sum over i in [0, n) of f(i, count), whose lanes beyond count must be 0: four accumulators, one fixed order.
template <typename F>
inline float sum_vectors(int64_t n, const F& f) {
  VecF a{}, b{}, c{}, d{};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a += f(i, kLanes);
    b += f(i + kLanes, kLanes);
    c += f(i + 2 * kLanes, kLanes);
    d += f(i + 3 * kLanes, kLanes);
  }
  for (; i + kLanes <= n; i += kLanes) a += f(i, kLanes);
  if (i < n) b += f(i, static_cast<int>(n - i));
  return sum((a + b) + (c + d));
}

/// Largest value of x [n]; NaN may be lost; -inf when n is 0.
template <typename T>
inline float max_of(const T* x, int64_t n) {
  const VecF lowest = splat(-__builtin_inff());
  VecF a = lowest, b = lowest, c = lowest, d = lowest;
  const auto take = [](VecF& m, VecF v) { m = v > m ? v : m; };
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    take(a, load(x + i));
    take(b, load(x + i + kLanes));
    take(c, load(x + i + 2 * kLanes));
    take(d, load(x + i + 3 * kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) take(a, load(x + i));
  if (i < n) take(b, keep_lanes(load_part(x + i, static_cast<int>(n - i)), static_cast<int>(n - i), -__builtin_inff()));
  take(a, b);
  take(c, d);
  take(a, c);
  return max_lane(a);
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
