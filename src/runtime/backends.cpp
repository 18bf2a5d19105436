#include "runtime/backends.h"

#include "backend/cpu/backend.h"
#include "backend/cpu/matmul.h"
#include "backend/ref/ref.h"
#include "core/log.h"

namespace muster::runtime {

std::unique_ptr<backend::Backend> make_backend(std::string_view name, Isa isa, const cpu::Tuning& tuning,
                                               std::shared_ptr<const cpu::Code> code) {
  if (name == "cpu") return cpu::make_backend(isa, tuning, std::move(code));
  if (name == "ref") return ref::make_backend();
  throw Error(ErrorKind::usage, "[backend] unknown '{}': have cpu, ref", name);
}

Isa machine_isa() {
  static const Isa isa = [] {
    const Isa resolved = resolve_isa(detect_cpu());
    if (resolved != Isa::amx || cpu::amx_self_test()) return resolved;
    log_warning("AMX gives wrong products on this machine: using avx512 and f32; `muster doctor` says more");
    return Isa::avx512;
  }();
  return isa;
}

}  // namespace muster::runtime
