// What happens to a finished f32 tile of sums on its way into C: generated code, or the conversion; and the way back for `accumulate`.
#pragma once
#include "backend/cpu/vec.h"
#include "backend/cpu/matmul_kernels.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

/// The place in C of a tile: rows [row, row + rows).
struct Tile {
  const Result& c;
  const Epilogue& epilogue;
  int64_t row = 0;
  int rows = 0;

  /// t[padded_rows, padded_cols] = C[rows, cols at `col`], zero around it.
  void read(float* t, int64_t col, int cols, int padded_cols, int padded_rows) const {
    c.dtype == DType::f32 ? read_as<float>(t, col, cols, padded_cols, padded_rows) : read_as<BF16>(t, col, cols, padded_cols, padded_rows);
  }

  /// C[rows, cols at `col`] = t, or what the generated code makes of it; there t may be that place of C itself.
  void finish(float* t, int64_t stride, int64_t col, int cols) const {
    if (epilogue.function != nullptr) return generated(t, stride, col, cols);
    c.dtype == DType::f32 ? write<float>(t, stride, col, cols) : write<BF16>(t, stride, col, cols);
  }

 private:
  [[gnu::noinline]] void generated(float* t, int64_t stride, int64_t col, int cols) const {
    const int64_t at = epilogue.row + row;
    const RegionCall& shared = epilogue.calls[at / epilogue.rows_per_call];
    if (shared.streams == nullptr) return epilogue.function(&shared, t, stride, at, rows, epilogue.col + col, cols);
    alignas(64) uint16_t words[kMaxTileMasks * mask_room(kMaxTileCols)];  // of this thread
    RegionCall call = shared;
    call.words = words;
    epilogue.function(&call, t, stride, at, rows, epilogue.col + col, cols);
  }

  template <typename T>
  void read_as(float* t, int64_t col, int cols, int padded_cols, int padded_rows) const {
    for (int i = 0; i < padded_rows; ++i)
      for (int j = 0; j < padded_cols; j += kLanes) {
        const int live = i < rows ? std::clamp(cols - j, 0, kLanes) : 0;
        const T* from = static_cast<const T*>(c.data) + (row + i) * c.stride + col + j;
        store(t + i * padded_cols + j, live == kLanes ? load(from) : live > 0 ? load_part(from, live) : VecF{});
      }
  }

  template <typename T>
  [[gnu::noinline]] void write(const float* t, int64_t stride, int64_t col, int cols) const {
    for (int j = 0; j < cols; j += kLanes) {
      const int live = std::min(cols - j, kLanes);
      T* out = static_cast<T*>(c.data) + row * c.stride + col + j;
      for (int i = 0; i < rows; ++i) {
        const float* from = t + i * stride + j;
        live == kLanes ? store(out + i * c.stride, load(from)) : store_part(out + i * c.stride, load_part(from, live), live);
      }
    }
  }
};

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
