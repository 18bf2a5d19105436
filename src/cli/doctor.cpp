// muster doctor: the machine, the instruction set and precision that muster takes on it and why, and what is missing.
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "cli/support.h"
#include "cli/verbs.h"
#include "cli/version.h"
#include "core/cgroup.h"
#include "core/cpu.h"
#include "runtime/backends.h"
#include "runtime/compile_cache.h"
#include "runtime/machine_tuning.h"

namespace muster::cli {
namespace {

struct Fact {
  std::string key, text;
};

double gibibytes(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

std::string available_memory() {
  std::ifstream in("/proc/meminfo");
  std::string key;
  uint64_t kib = 0;
  for (std::string unit; in >> key >> kib; std::getline(in, unit))
    if (key == "MemAvailable:") return fmt::format("{:.1f} GiB", gibibytes(kib * 1024));
  return "unknown";
}

/// The cgroup's limit, or "none".
std::string memory_limit() {
  const auto bytes = cgroup_limits().memory;
  return bytes ? fmt::format("{:.1f} GiB", gibibytes(*bytes)) : "none";
}

std::string features(const CpuInfo& info) {
  std::string text;
  const std::pair<bool, const char*> all[] = {{info.avx2, "avx2"},
                                              {info.fma, "fma"},
                                              {info.avx512, "avx512"},
                                              {info.avx512_bf16, "avx512_bf16"},
                                              {info.avx512_vnni, "avx512_vnni"},
                                              {info.amx_tile, "amx_tile"},
                                              {info.amx_bf16, "amx_bf16"},
                                              {info.amx_int8, "amx_int8"}};
  for (const auto& [has, name] : all)
    if (has) text += (text.empty() ? "" : " ") + std::string(name);
  return text;
}

std::string temporary_space() {
  struct statvfs fs = {};
  try {
    const std::string folder = temporary_folder();
    return statvfs(folder.c_str(), &fs) == 0 ? fmt::format("{:.1f} GiB free in {}", gibibytes(uint64_t{fs.f_bavail} * fs.f_frsize), folder)
                                             : "unknown";
  } catch (const Error& e) {
    return e.what();
  }
}

std::vector<std::string> missing(const CpuInfo& info, Isa isa) {
  std::vector<std::string> lines;
  if (!info.avx512) lines.push_back("AVX-512: vectors are 256 bits wide");
  if (info.avx512 && !info.amx_bf16) lines.push_back("AMX (hidden by the hypervisor, the kernel, or not there): products run in f32");
  if (info.amx_bf16 && isa != Isa::amx) lines.push_back("AMX is there but not used: lowered by MUSTER_ISA, or its self-test failed");
  if (!info.avx512 && !info.amx_bf16) lines.push_back("AMX: products run in f32");
  std::ifstream huge("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string modes;
  if (std::getline(huge, modes) && modes.find("[never]") != std::string::npos)
    lines.push_back("transparent huge pages are off: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
  return lines;
}

std::string describe(const cpu::Blocking& blocking, double gflops) {
  const std::string rows = blocking.rows > 0 ? fmt::format("blocks of {} rows", blocking.rows) : "blocks computed from the caches";
  return gflops > 0 ? fmt::format("{:.0f} GFLOP/s a core, {}", gflops, rows) : rows;
}

int run(bool json) {
  const CpuInfo info = detect_cpu();
  const Isa isa = runtime::machine_isa();
  const runtime::MachineTuning tuned = runtime::machine_tuning(isa, runtime::default_cache_folder());
  const runtime::PrecisionChoice choice = runtime::resolve_precision(runtime::Precision::automatic, isa, tuned.tuning);
  const std::vector<Fact> facts{
      {"muster", kVersion},
      {"processor", info.brand},
      {"features", features(info)},
      {"isa", std::string(name_of(isa))},
      {"cores", std::to_string(info.logical_cores)},
      {"caches", fmt::format("L1d {} KiB, L2 {} KiB, L3 {} MiB", info.l1d_bytes >> 10, info.l2_bytes >> 10, info.l3_bytes >> 20)},
      {"memory",
       fmt::format("{:.1f} GiB", gibibytes(static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE))))},
      {"memory_available", available_memory()},
      {"memory_limit", memory_limit()},
      {"temporary_space", temporary_space()},
      {"precision", choice.reason},
      {"matmul_f32", describe(tuned.tuning.f32, tuned.tuning.f32_gflops)},
      {"matmul_bf16", describe(tuned.tuning.bf16, tuned.tuning.bf16_gflops)},
      {"matmul_tuning", tuned.how},
  };
  const std::vector<std::string> lacks = missing(info, isa);
  if (json) {
    std::string line = "{";
    for (const Fact& fact : facts) line += fmt::format("{}\"{}\":{}", line.size() > 1 ? "," : "", fact.key, json_string(fact.text));
    line += ",\"missing\":[";
    for (size_t i = 0; i < lacks.size(); ++i) line += (i ? "," : "") + json_string(lacks[i]);
    std::cout << line << "]}\n";
    return 0;
  }
  for (const Fact& fact : facts) std::cout << fmt::format("{:<17} {}\n", fact.key, fact.text);
  std::cout << fmt::format("{:<17} {}\n", "missing", lacks.empty() ? "nothing" : lacks.front());
  for (size_t i = 1; i < lacks.size(); ++i) std::cout << fmt::format("{:<17} {}\n", "", lacks[i]);
  return 0;
}

}  // namespace

std::function<int()> declare_doctor(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "print it as one JSON object");
  return [json] { return run(*json); };
}

}  // namespace muster::cli
