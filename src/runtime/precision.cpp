#include "runtime/backends.h"
#include "runtime/compile.h"
#include "runtime/machine_tuning.h"

namespace muster::runtime {
namespace {

constexpr double kWorthRounding = 1.5;  // how much faster bf16 must be

}  // namespace

PrecisionChoice resolve_precision(Precision wanted, Isa isa, const cpu::Tuning& tuning) {
  switch (wanted) {
    case Precision::f32: return {Precision::f32, "f32: asked for"};
    case Precision::bf16:
      return {Precision::bf16,
              isa == Isa::amx
                  ? "bf16: asked for"
                  : "bf16: asked for (this machine has no AMX: values are rounded to bf16 and multiplied in f32, so it is not faster)"};
    case Precision::automatic: break;
  }
  if (tuning.f32_gflops > 0 && tuning.bf16_gflops > 0) {
    const double gain = tuning.bf16_gflops / tuning.f32_gflops;
    const bool worth = gain >= kWorthRounding;
    return {worth ? Precision::bf16 : Precision::f32,
            fmt::format("{}: bf16 products run {:.2g}x as fast as f32 on this machine's {} (measured: {:.0f} and {:.0f} GFLOP/s)",
                        worth ? "bf16" : "f32", gain, name_of(isa), tuning.bf16_gflops, tuning.f32_gflops)};
  }
  if (isa == Isa::amx) return {Precision::bf16, "bf16: the machine has AMX tiles for it"};
  return {Precision::f32, fmt::format("f32: {} has no bf16 tiles, and bf16 products would run no faster", name_of(isa))};
}

PrecisionChoice resolve_precision(const Options& options) {
  const Isa isa = options.isa ? *options.isa : machine_isa();
  if (options.precision != Precision::automatic) return resolve_precision(options.precision, isa);
  return resolve_precision(options.precision, isa, machine_tuning(isa, options.cache_folder).tuning);
}

}  // namespace muster::runtime
