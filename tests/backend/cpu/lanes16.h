// Kernels that exist for tests only: the 16-lane source compiled without AVX-512 (the compiler splits the vectors), and the AMX source
// on emulated tiles.
#pragma once
#include "backend/cpu/matmul_kernels.h"

namespace muster::cpu::lanes16 {
const MatmulKernels& f32_kernels(Math math);  // isa/matmul_f32.cpp once more
const MatmulKernels& emulated_amx_kernels();  // emulated_amx.cpp
}  // namespace muster::cpu::lanes16
