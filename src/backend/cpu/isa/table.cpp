// The table of this instruction-set level.
#include "backend/cpu/isa/isa.h"
#include "backend/cpu/vec.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

const Kernels& table() {
  static constexpr Kernels kTable{
      .unary = unary,
      .binary = binary,
      .scale = scale,
      .convert = convert,
      .fill = fill,
      .select = select,
      .dropout = dropout,
      .mask_words = mask_words,
      .layer_norm = layer_norm,
      .layer_norm_grad = layer_norm_grad,
      .attention = attention,
      .attention_grad = attention_grad,
      .cross_entropy = cross_entropy,
      .cross_entropy_grad = cross_entropy_grad,
      .softmax = softmax,
      .fma_probe = fma_probe,
      .fma_probe_flops = kProbeChains * kLanes * 2,
      .gather_rows = gather_rows,
      .scatter_add_rows = scatter_add_rows,
      .column_sum = column_sum,
      .row_sum = row_sum,
      .row_max = row_max,
      .sum = sum,
      .transpose = transpose,
      .adamw = adamw,
      .lamb = lamb,
      .adamw_rows = adamw_rows,
      .sum_of_squares = sum_of_squares,
      .has_nonfinite = has_nonfinite,
  };
  return kTable;
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
