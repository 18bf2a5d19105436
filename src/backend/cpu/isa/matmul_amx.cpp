// The hardware's tiles. Entered only where core/cpu.h found AMX and the kernel granted its state to this process.
#include "backend/cpu/isa/amx_kernel.h"

namespace muster::cpu::amx {
namespace {

/// The operand of ldtilecfg (Intel SDM volume 1, section 18.3).
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Written out, because the compiler's intrinsics want tile numbers as literals and do not say that they touch memory.
struct HardwareTiles {
  static void configure() {
    TileConfig config;
    for (int i = 0; i < 8; ++i) config.row_bytes[i] = 64, config.rows[i] = 16;
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
  }
  static void release() { __asm__ volatile("tilerelease" ::: "memory"); }
  template <int kTile>
  static void zero() {
    __asm__ volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  template <int kTile>
  static void load(const void* from, int64_t stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  static void store(void* to, int64_t stride) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kC, int kA, int kB>
  static void dot() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
  }
};

}  // namespace

const MatmulKernels& bf16_kernels() {
  static constexpr MatmulKernels kernels = tile_kernels<HardwareTiles>();
  return kernels;
}

}  // namespace muster::cpu::amx
