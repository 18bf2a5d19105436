// What this machine's processor can do, decided from CPUID, XGETBV and the kernel's answer, never from a model name.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// Instruction-set levels the CPU backend has kernels for; each includes the ones before it.
enum class Isa { avx2, avx512, amx };

std::string_view name_of(Isa isa);
std::optional<Isa> parse_isa(std::string_view name);

struct CpuInfo {
  std::string vendor, brand;
  bool avx2 = false, fma = false, avx512 = false, avx512_bf16 = false, avx512_vnni = false, amx_tile = false, amx_bf16 = false,
       amx_int8 = false;
  int logical_cores = 1;  // that this process may use: affinity and the cgroup's quota counted
  size_t l1d_bytes = 32 << 10, l2_bytes = 512 << 10, l3_bytes = 8 << 20;
};

/// Asks the processor and the operating system; requests the AMX tile permission from the kernel when the processor has it.
CpuInfo detect_cpu();

/// The level to run at: the best the machine has, lowered by MUSTER_ISA=avx2|avx512|amx.
/// Throws Error(unsupported) when not even AVX2 is there, Error(usage) when MUSTER_ISA names something unknown or higher than the machine
/// has.
Isa resolve_isa(const CpuInfo& info);

}  // namespace muster
