// Products of small f32 matrices that lie in the first caches, for attention. An element of C is one chain of sums, k rising: its bits do
// not depend on how rows and columns are cut.
#pragma once
#include "backend/cpu/isa/loops.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

/// A seen through two strides: element (m, k) = data[m * row + k * depth].
struct Left {
  const float* data;
  int64_t row, depth;
};
/// Rows of whole vectors.
struct Right32 {
  const float* data;
  int64_t stride;
};
struct Output {
  float* data;
  int64_t stride;
};

constexpr int kTileRows = kLanes == 16 ? 8 : 6;  // times two vectors: what the register file holds

template <int kRows, int kVectors>
inline void product_tile(Left a, Right32 b, Output c, int64_t depth, bool accumulate) {
  VecF acc[kRows][kVectors] = {};
  if (accumulate) {
#pragma GCC unroll 8
    for (int m = 0; m < kRows; ++m)
#pragma GCC unroll 2
      for (int n = 0; n < kVectors; ++n) acc[m][n] = load(c.data + m * c.stride + n * kLanes);
  }
  for (int64_t k = 0; k < depth; ++k) {
    VecF right[kVectors];
#pragma GCC unroll 2
    for (int n = 0; n < kVectors; ++n) right[n] = load(b.data + k * b.stride + n * kLanes);
#pragma GCC unroll 8
    for (int m = 0; m < kRows; ++m) {
      const VecF left = splat(a.data[m * a.row + k * a.depth]);
#pragma GCC unroll 2
      for (int n = 0; n < kVectors; ++n) acc[m][n] = fma(left, right[n], acc[m][n]);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < kRows; ++m)
#pragma GCC unroll 2
    for (int n = 0; n < kVectors; ++n) store(c.data + m * c.stride + n * kLanes, acc[m][n]);
}

template <int kRows>
void product_rows(Left a, Right32 b, Output c, int64_t columns, int64_t depth, bool accumulate) {
  int64_t n = 0;
  for (; n + 2 * kLanes <= columns; n += 2 * kLanes)
    product_tile<kRows, 2>(a, {b.data + n, b.stride}, {c.data + n, c.stride}, depth, accumulate);
  if (n < columns) product_tile<kRows, 1>(a, {b.data + n, b.stride}, {c.data + n, c.stride}, depth, accumulate);
}

/// f(integral_constant<int, count>) for a count in [kFirst, kTileRows].
template <int kFirst, typename F>
inline void with_row_count(int64_t count, const F& f) {
  if constexpr (kFirst < kTileRows) {
    if (count != kFirst) return with_row_count<kFirst + 1>(count, f);
  }
  f(std::integral_constant<int, kFirst>{});
}

/// c [rows, columns] (+)= a [rows, depth] * b [depth, columns]; columns is a multiple of kLanes.
inline void small_product(Left a, Right32 b, Output c, int64_t rows, int64_t columns, int64_t depth, bool accumulate) {
  const int64_t parts = (rows + kTileRows - 1) / kTileRows;
  for (int64_t part = 0, m = 0; part < parts; ++part) {
    const int64_t count = (rows - m) / (parts - part);  // nearly equal parts: a tile of one row would wait for its own sums
    const Left left{a.data + m * a.row, a.row, a.depth};
    const Output out{c.data + m * c.stride, c.stride};
    with_row_count<1>(count, [&](auto rows_of_tile) { product_rows<rows_of_tile.value>(left, b, out, columns, depth, accumulate); });
    m += count;
  }
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
