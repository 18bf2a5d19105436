// Transposes of tiles in memory: whole ones and cut-off ones, through registers.
#pragma once
#include "backend/cpu/isa/loops.h"
#include "backend/cpu/isa/transpose.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

/// out[c][r] = x[r][c] for a tile of `rows` x `columns` (at most kLanes each); `store_count` lanes of each line of `out` are written,
/// zeros beyond `rows`. Strides in elements.
template <typename From, typename To>
inline void transpose_tile(const From* x, int64_t stride, int64_t rows, int64_t columns, To* out, int64_t out_stride, int store_count) {
  VecF tile[kLanes];
  if (rows == kLanes && columns == kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) tile[i] = load(x + i * stride);
  } else {
    for (int i = 0; i < kLanes; ++i) tile[i] = i < rows ? load_n(x + i * stride, static_cast<int>(columns)) : VecF{};
  }
  transpose(tile);
  if (columns == kLanes && store_count == kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) store(out + i * out_stride, tile[i]);
  } else {
    for (int64_t i = 0; i < columns; ++i) store_n(out + i * out_stride, tile[i], store_count);
  }
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
