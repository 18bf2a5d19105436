// What happens to a finished f32 tile of sums on its way into C: bias, the value before the activation, the activation, the
// conversion; and the way back for `accumulate`.
#pragma once
#include "backend/cpu/isa/activations.h"
#include "backend/cpu/matmul_kernels.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

template <Activation kActivation>
VecF activate(VecF x) {
  if constexpr (kActivation == Activation::gelu) return gelu(x);
  if constexpr (kActivation == Activation::gelu_tanh) return gelu_tanh(x);
  if constexpr (kActivation == Activation::tanh) return tanh(x);
  return x;
}

/// The place in C of a tile: rows [row, row + rows).
struct Tile {
  const Result& c;
  const Epilogue& epilogue;
  int64_t row = 0;
  int rows = 0;

  /// Nothing is left to do for a tile whose sums already lie in an f32 C.
  [[nodiscard]] bool plain() const {
    return epilogue.bias == nullptr && epilogue.activation == Activation::none && epilogue.pre_activation == nullptr;
  }

  /// t[padded_rows, padded_cols] = C[rows, cols at `col`], zero around it.
  void read(float* t, int64_t col, int cols, int padded_cols, int padded_rows) const {
    c.dtype == DType::f32 ? read_as<float>(t, col, cols, padded_cols, padded_rows) : read_as<BF16>(t, col, cols, padded_cols, padded_rows);
  }

  /// C[rows, cols at `col`] = epilogue(t); t may be that place of C itself.
  void finish(const float* t, int64_t stride, int64_t col, int cols) const {
    if (epilogue.function != nullptr) return generated(t, stride, col, cols);
    c.dtype == DType::f32 ? finish_as<float>(t, stride, col, cols) : finish_as<BF16>(t, stride, col, cols);
  }

 private:
  [[gnu::noinline]] void generated(const float* t, int64_t stride, int64_t col, int cols) const {
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
  void finish_as(const float* t, int64_t stride, int64_t col, int cols) const {
    switch (epilogue.activation) {
      case Activation::none: return write<T, Activation::none>(t, stride, col, cols);
      case Activation::gelu: return write<T, Activation::gelu>(t, stride, col, cols);
      case Activation::gelu_tanh: return write<T, Activation::gelu_tanh>(t, stride, col, cols);
      case Activation::tanh: return write<T, Activation::tanh>(t, stride, col, cols);
    }
  }

  template <typename T, Activation kActivation>
  [[gnu::noinline]] void write(const float* t, int64_t stride, int64_t col, int cols) const {
    int j = 0;
    for (; j + kLanes <= cols; j += kLanes) write_columns<T, kActivation, true>(t + j, stride, col + j, kLanes);
    if (j < cols) write_columns<T, kActivation, false>(t + j, stride, col + j, cols - j);
  }

  /// One vector of columns, `live` of them there.
  template <typename T, Activation kActivation, bool kFull>
  void write_columns(const float* t, int64_t stride, int64_t col, int live) const {
    const auto get = [live](const float* from) { return kFull ? load(from) : load_part(from, live); };
    const auto put = [live](T* to, VecF x) { kFull ? store(to, x) : store_part(to, x, live); };
    const bool biased = epilogue.bias != nullptr;
    const VecF bias = biased ? get(epilogue.bias + col) : VecF{};
    T* out = static_cast<T*>(c.data) + row * c.stride + col;
    T* before = epilogue.pre_activation == nullptr ? nullptr : static_cast<T*>(epilogue.pre_activation) + row * c.stride + col;
    for (int i = 0; i < rows; ++i) {
      VecF x = get(t + i * stride);
      if (biased) x += bias;
      if (before != nullptr) put(before + i * c.stride, x);
      put(out + i * c.stride, activate<kActivation>(x));
    }
  }
};

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
