#include "backend/cpu/isa/amx_kernel.h"
#include "emulated_tiles.h"
#include "lanes16.h"

namespace muster::cpu::lanes16 {

const MatmulKernels& emulated_amx_kernels() {
  static constexpr MatmulKernels kernels = tile_kernels<EmulatedTiles>();
  return kernels;
}

}  // namespace muster::cpu::lanes16
