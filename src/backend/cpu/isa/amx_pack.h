// Packing for bf16 tiles, in panels of 32 lines. A step of 32 k holds two tiles of 64-byte rows: of the left operand 16 lines x 32 k
// as they are, of the right one 16 pairs of k x 16 lines, a pair side by side in 32 bits (the layout tdpbf16ps wants).
#pragma once
#include "backend/cpu/isa/transpose.h"
#include "backend/cpu/matmul_kernels.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

static_assert(kLanes == 16, "a tile row is one vector");

/// Each lane rounded to bf16, in the low half.
inline VecU bf16_lanes(VecF x) {
  const VecU u = reinterpret_cast<VecU>(x);
  return x == x ? (u + 0x7fffu + ((u >> 16) & 1u)) >> 16 : (u >> 16) | 0x40u;
}
/// The first `live` of 16 values as bf16, in the low half of each lane.
inline VecU lanes_of(const float* p, int live) { return bf16_lanes(live >= kLanes ? load(p) : load_part(p, live)); }
inline VecU lanes_of(const BF16* p, int live) {
  VecH h{};
  std::memcpy(&h, p, live >= kLanes ? sizeof h : static_cast<size_t>(live) * sizeof(BF16));
  return __builtin_convertvector(h, VecU);
}

/// The first `live` of 32 values that lie along k, as bf16 pairs.
inline VecU pairs_along(const BF16* p, int live) {
  VecU v{};
  std::memcpy(&v, p, live >= 2 * kLanes ? sizeof v : static_cast<size_t>(live) * sizeof(BF16));
  return v;
}
inline VecU pairs_along(const float* p, int live) {
  BF16 narrow[2 * kLanes];
  if (live >= 2 * kLanes) {
    store(narrow, load(p));
    store(narrow + kLanes, load(p + kLanes));
  } else {
    store(narrow, load_part(p, std::min(live, kLanes)));
    store(narrow + kLanes, live > kLanes ? load_part(p + kLanes, live - kLanes) : VecF{});
  }
  return pairs_along(narrow, 2 * kLanes);
}

template <bool kLeft, typename T>
void pack_tiles(const PackSource& s, const PanelLayout& layout, int64_t block, int64_t begin, int64_t end, std::byte* packed) {
  constexpr int kTile = 16, kStep = 32;
  const auto* from = reinterpret_cast<const T*>(s.data);
  const int64_t k0 = layout.begin(block), depth = layout.depth(block);
  const auto square_at = [&](int64_t k, int64_t line, VecU(&square)[kTile]) {
    const int live_k = static_cast<int>(std::clamp<int64_t>(layout.k - k, 0, kStep)),
              live = static_cast<int>(std::clamp<int64_t>(s.lines - line, 0, kTile));
    for (int i = 0; i < kTile; ++i) {
      square[i] = VecU{};
      if (s.k_contiguous) {
        if (i < live && live_k > 0) square[i] = pairs_along(from + (line + i) * s.stride + k, live_k);
      } else if (2 * i < live_k && live > 0) {
        const T* row = from + (k + 2 * i) * s.stride + line;
        square[i] = lanes_of(row, live);
        if (2 * i + 1 < live_k) square[i] |= lanes_of(row + s.stride, live) << 16;
      }
    }
    if (s.k_contiguous != kLeft) transpose(square);
  };
  // Steps outside: where lines lie side by side, neighbouring panels read the same cache lines one after the other.
  for (int64_t step = 0; step < depth / kStep; ++step)
    for (int64_t panel = begin; panel < end; ++panel) {
      std::byte* to = packed + (layout.offset(block, panel) + step * kStep * layout.width) * int64_t{sizeof(BF16)};
      for (int tile = 0; tile < layout.width / kTile; ++tile) {
        VecU square[kTile];
        square_at(k0 + step * kStep, panel * layout.width + tile * kTile, square);
        std::memcpy(to + tile * sizeof square, square, sizeof square);
      }
    }
}

template <bool kLeft>
void pack_tiles_of(const PackSource& s, const PanelLayout& layout, int64_t block, int64_t begin, int64_t end, std::byte* packed) {
  s.dtype == DType::f32 ? pack_tiles<kLeft, float>(s, layout, block, begin, end, packed)
                        : pack_tiles<kLeft, BF16>(s, layout, block, begin, end, packed);
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
