// AMX tiles in plain C++ after the Intel SDM (volume 2, TDPBF16PS, TILELOADD, TILESTORED): what lets the tile kernel's packing, edges
// and loops be tested on a machine without AMX. The hardware's own arithmetic is what this follows, not what it proves.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/dtype.h"

namespace muster::cpu {

struct EmulatedTiles {
  static constexpr int kRows = 16, kRowBytes = 64;
  struct State {
    alignas(64) std::byte tile[8][kRows][kRowBytes];
    bool configured = false;
  };
  static State& state() {
    static thread_local State s;
    return s;
  }

  static void configure() {
    std::memset(state().tile, 0, sizeof state().tile);
    state().configured = true;
  }
  static void release() { state().configured = false; }

  template <int kTile>
  static void zero() {
    std::memset(here().tile[kTile], 0, sizeof here().tile[kTile]);
  }
  template <int kTile>
  static void load(const void* from, int64_t stride) {
    for (int r = 0; r < kRows; ++r) std::memcpy(here().tile[kTile][r], static_cast<const std::byte*>(from) + r * stride, kRowBytes);
  }
  template <int kTile>
  static void store(void* to, int64_t stride) {
    for (int r = 0; r < kRows; ++r) std::memcpy(static_cast<std::byte*>(to) + r * stride, here().tile[kTile][r], kRowBytes);
  }

  /// Per element the even and the odd products of a row of pairs are summed apart, then together, then into C; denormals count as zero.
  template <int kC, int kA, int kB>
  static void dot() {
    State& s = here();
    for (int m = 0; m < kRows; ++m)
      for (int n = 0; n < kRows; ++n) {
        float even = 0, odd = 0, c = 0;
        for (int pair = 0; pair < kRowBytes / 4; ++pair) {
          even = flushed(std::fma(at(s.tile[kA][m], 2 * pair), at(s.tile[kB][pair], 2 * n), even));
          odd = flushed(std::fma(at(s.tile[kA][m], 2 * pair + 1), at(s.tile[kB][pair], 2 * n + 1), odd));
        }
        std::memcpy(&c, s.tile[kC][m] + 4 * n, sizeof c);
        c = flushed(flushed(c) + flushed(even + odd));
        std::memcpy(s.tile[kC][m] + 4 * n, &c, sizeof c);
      }
  }

 private:
  /// Tiles touched outside a configured stretch are an error on hardware too.
  static State& here() {
    State& s = state();
    if (!s.configured) __builtin_trap();
    return s;
  }
  static float flushed(float x) { return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }
  static float at(const std::byte* row, int index) {
    BF16 x;
    std::memcpy(&x, row + 2 * index, sizeof x);
    return flushed(to_f32(x));
  }
};

}  // namespace muster::cpu
