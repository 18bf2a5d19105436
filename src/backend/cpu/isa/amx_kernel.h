// The bf16 micro-kernel: 32x32 of C in four tiles, two tiles of A and two of B a step of 32 k. Tiles is the hardware's
// (matmul_amx.cpp) or the tests' emulation of it, so that all around the instructions is tested on any machine. It gives
//   configure(), release(): of this thread; 8 tiles of 16 rows x 64 bytes
//   zero<T>(), load<T>(from, stride in bytes), store<T>(to, stride), dot<C, A, B>(): C += A * B, bf16 pairs summed in f32.
#pragma once
#include "backend/cpu/isa/amx_pack.h"
#include "backend/cpu/isa/matmul_chunk.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

template <typename Tiles>
struct Bf16TileKernel {
  using Element = BF16;
  static constexpr int kRows = 32, kCols = 32, kStep = 32, kTile = 512;  // elements of a tile of A or B
  static constexpr bool kExactRows = false;
  static constexpr int64_t panels(int) { return 1; }

  static void run(const Step<BF16>& s) { s.rows > 16 ? tile<true>(s) : tile<false>(s); }

  /// kBoth: rows 16 to 31 are live too.
  template <bool kBoth>
  [[gnu::noinline]] static void tile(const Step<BF16>& s) {
    constexpr int64_t kLine = 64, kHalf = 16;
    const int64_t stride = s.stride * int64_t{sizeof(float)};
    float* const lower = s.tile + kHalf * s.stride;
    if (s.zero) {
      Tiles::template zero<0>(), Tiles::template zero<1>();
      if constexpr (kBoth) Tiles::template zero<2>(), Tiles::template zero<3>();
    } else {
      Tiles::template load<0>(s.tile, stride), Tiles::template load<1>(s.tile + kHalf, stride);
      if constexpr (kBoth) Tiles::template load<2>(lower, stride), Tiles::template load<3>(lower + kHalf, stride);
    }
    const int64_t steps = s.depth / kStep, lines = steps == 0 ? 0 : ceil_div(s.ahead_lines, steps);
    const BF16 *a = s.a, *b = s.b;
    const std::byte* ahead = s.ahead;
    for (int64_t k = 0; k < steps; ++k, a += 2 * kTile, b += 2 * kTile) {
      Tiles::template load<6>(b, kLine);
      Tiles::template load<4>(a, kLine);
      Tiles::template dot<0, 4, 6>();
      Tiles::template load<7>(b + kTile, kLine);
      for (int64_t i = 0; i < lines; ++i, ahead += kLine) __builtin_prefetch(ahead, 0, 2);  // the next panel of B, into L2
      Tiles::template dot<1, 4, 7>();
      if constexpr (kBoth) {
        Tiles::template load<5>(a + kTile, kLine);
        Tiles::template dot<2, 5, 6>();
        Tiles::template dot<3, 5, 7>();
      }
    }
    Tiles::template store<0>(s.tile, stride), Tiles::template store<1>(s.tile + kHalf, stride);
    if constexpr (kBoth) Tiles::template store<2>(lower, stride), Tiles::template store<3>(lower + kHalf, stride);
  }
};

/// Tiles are set up and given back around each chunk (a hundred cycles against tens of thousands), so a thread that does other
/// work in between carries no tile state through context switches.
template <typename Tiles>
void multiply_tiles(const Product& product, const PanelRange& range, std::byte* scratch) {
  struct Session {
    Session() { Tiles::configure(); }
    ~Session() { Tiles::release(); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
  } const session;
  ChunkLoop<Bf16TileKernel<Tiles>>(product, range, scratch).run();
}

template <typename Tiles>
constexpr MatmulKernels tile_kernels() {
  using Kernel = Bf16TileKernel<Tiles>;
  return {.rows = Kernel::kRows,
          .cols = Kernel::kCols,
          .k_step = Kernel::kStep,
          .max_k_block = 256,
          .element_bytes = sizeof(BF16),
          .flops_per_ns = 1500,
          .pack_left = pack_tiles_of<true>,
          .pack_right = pack_tiles_of<false>,
          .multiply = multiply_tiles<Tiles>};
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
