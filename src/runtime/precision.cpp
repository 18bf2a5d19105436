#include "runtime/compile.h"

namespace muster::runtime {

PrecisionChoice resolve_precision(Precision wanted, Isa isa) {
  switch (wanted) {
    case Precision::f32: return {Precision::f32, "f32: asked for"};
    case Precision::bf16:
      return {Precision::bf16,
              isa == Isa::amx
                  ? "bf16: asked for"
                  : "bf16: asked for (this machine has no AMX: values are rounded to bf16 and multiplied in f32, so it is not faster)"};
    case Precision::automatic: break;
  }
  if (isa == Isa::amx) return {Precision::bf16, "bf16: the machine has AMX tiles for it"};
  return {Precision::f32, fmt::format("f32: {} has no bf16 tiles, and bf16 products would run no faster", name_of(isa))};
}

}  // namespace muster::runtime
