#include "runtime/machine_tuning.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "storage/file.h"
#include "storage/sha256.h"

namespace muster::runtime {
namespace {

constexpr std::string_view kHeader = "muster tuning 1";

/// Everything that the answer depends on.
std::string file_name(Isa isa) {
  const CpuInfo info = detect_cpu();
  const std::string machine =
      fmt::format("{} {} {} {} {} {}", kHeader, info.brand, name_of(isa), info.l1d_bytes, info.l2_bytes, info.l3_bytes);
  return "tuning-" + storage::sha256_hex(machine).substr(0, 16) + ".txt";
}

std::string to_text(const cpu::Tuning& t) {
  return fmt::format("{}\nf32_rows {}\nbf16_rows {}\nf32_gflops {:.1f}\nbf16_gflops {:.1f}\n", kHeader, t.f32.rows, t.bf16.rows,
                     t.f32_gflops, t.bf16_gflops);
}

/// Nothing for a text that is cut off, altered or of another version.
std::optional<cpu::Tuning> from_text(const std::string& text) {
  cpu::Tuning t;
  std::istringstream in(text);
  std::string line, name;
  if (!std::getline(in, line) || line != kHeader) return std::nullopt;
  const auto rows = [&](const char* key, int64_t& value) { return in >> name >> value && name == key && value >= 0 && value <= 1 << 16; };
  const auto rate = [&](const char* key, double& value) { return in >> name >> value && name == key && std::isfinite(value) && value > 0; };
  if (!rows("f32_rows", t.f32.rows) || !rows("bf16_rows", t.bf16.rows) || !rate("f32_gflops", t.f32_gflops) ||
      !rate("bf16_gflops", t.bf16_gflops))
    return std::nullopt;
  return t;
}

}  // namespace

MachineTuning machine_tuning(Isa isa, const std::string& folder) {
  if (folder.empty()) return {{}, "not measured: there is no compile cache to keep it in"};
  const std::string path = folder + "/" + file_name(isa);
  if (storage::is_file(path)) try {
      if (const auto kept = from_text(storage::read_file(path))) return {*kept, "kept in " + path};
    } catch (const Error&) {  // measured anew
    }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (access(folder.c_str(), W_OK) != 0) return {{}, "not measured: " + folder + " cannot be written"};
  const cpu::Tuning tuning = cpu::measure_tuning(isa);
  try {
    storage::write_file_atomic(path, to_text(tuning), "tuning");
    return {tuning, "measured now, kept in " + path};
  } catch (const Error& e) {
    return {tuning, fmt::format("measured now, not kept: {}", e.what())};
  }
}

}  // namespace muster::runtime
