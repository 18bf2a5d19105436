#include "core/cpu.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/cgroup.h"
#include "core/error.h"

namespace muster {
namespace {

uint64_t xgetbv0() {
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

/// The kernel hands out the 8 KiB of tile state on request only (arch/x86/kernel/fpu/xstate.c): ARCH_REQ_XCOMP_PERM of XTILEDATA.
bool request_amx_permission() { return syscall(SYS_arch_prctl, 0x1023, 18) == 0; }

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int affine = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(1, std::min(affine, static_cast<int>(std::ceil(std::min(cgroup_limits().cpus.value_or(1e6), 1e6)))));
}

size_t cache_bytes(int name, size_t fallback) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<size_t>(bytes) : fallback;
}

}  // namespace

std::string_view name_of(Isa isa) { return isa == Isa::avx2 ? "avx2" : isa == Isa::avx512 ? "avx512" : "amx"; }

std::optional<Isa> parse_isa(std::string_view name) {
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::amx})
    if (name == name_of(isa)) return isa;
  return std::nullopt;
}

CpuInfo detect_cpu() {
  CpuInfo info;
  unsigned a = 0, b = 0, c = 0, d = 0;
  char text[49] = {};
  if (__get_cpuid(0, &a, &b, &c, &d)) {
    std::memcpy(text, &b, 4), std::memcpy(text + 4, &d, 4), std::memcpy(text + 8, &c, 4);
    info.vendor = text;
  }
  std::memset(text, 0, sizeof text);
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    unsigned r[4] = {};
    if (__get_cpuid(0x80000002u + leaf, &r[0], &r[1], &r[2], &r[3])) std::memcpy(text + leaf * 16, r, 16);
  }
  info.brand = text;
  __get_cpuid(1, &a, &b, &c, &d);
  const bool osxsave = (c & bit_OSXSAVE) != 0;
  info.fma = (c & bit_FMA) != 0;
  const uint64_t state = osxsave ? xgetbv0() : 0;
  const bool ymm = (state & 0x6) == 0x6, zmm = (state & 0xe6) == 0xe6, tiles = (state & 0x60000) == 0x60000;
  unsigned a1 = 0, b1 = 0, c1 = 0, d1 = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    info.avx2 = ymm && info.fma && (b & bit_AVX2);
    info.avx512 = zmm && (b & bit_AVX512F) && (b & bit_AVX512BW) && (b & bit_AVX512DQ) && (b & bit_AVX512VL);
    info.avx512_vnni = info.avx512 && (c & bit_AVX512VNNI);
    info.amx_tile = tiles && (d & (1u << 24)) && request_amx_permission();
    info.amx_bf16 = info.amx_tile && (d & (1u << 22));
    info.amx_int8 = info.amx_tile && (d & (1u << 25));
    if (__get_cpuid_count(7, 1, &a1, &b1, &c1, &d1)) info.avx512_bf16 = info.avx512 && (a1 & bit_AVX512BF16);
  }
  info.logical_cores = usable_cores();
  info.l1d_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, info.l1d_bytes);
  info.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, info.l2_bytes);
  info.l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE, info.l3_bytes);
  return info;
}

Isa resolve_isa(const CpuInfo& info) {
  if (!info.avx2) throw Error(ErrorKind::unsupported, "[cpu] {} has no AVX2 with FMA: muster needs an x86-64-v3 processor", info.brand);
  const Isa best = info.avx512 && info.amx_bf16 && info.avx512_bf16 ? Isa::amx : info.avx512 ? Isa::avx512 : Isa::avx2;
  const char* wanted = std::getenv("MUSTER_ISA");
  if (wanted == nullptr || *wanted == 0) return best;
  const auto isa = parse_isa(wanted);
  if (!isa) throw Error(ErrorKind::usage, "MUSTER_ISA={}: unknown; have avx2, avx512, amx", wanted);
  if (*isa > best) throw Error(ErrorKind::usage, "MUSTER_ISA={}: this machine has {} at most", wanted, name_of(best));
  return *isa;
}

}  // namespace muster
