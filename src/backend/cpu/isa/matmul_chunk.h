// The loops around a micro-kernel, the same for every instruction set: one thread's rectangle of C over all of K, with the
// epilogue applied to a tile right after its last block. A Kernel gives:
//   Element; kRows, kCols; kExactRows: it touches only the live rows of a tile;
//   panels(live rows): how many neighbouring column panels one call can take; run(Step).
#pragma once
#include "backend/cpu/isa/matmul_epilogue.h"
#include "backend/cpu/matmul_kernels.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

/// One call of a micro-kernel: tile (+)= a * b over one K block.
template <typename Element>
struct Step {
  const Element *a = nullptr, *b = nullptr;
  int64_t depth = 0;  // packed
  float* tile = nullptr;
  int64_t stride = 0;     // between rows of the tile, in elements
  int64_t tile_step = 0;  // from a panel's tile to its neighbour's
  bool zero = false;      // the sums start at 0, not at what the tile holds
  int rows = 0, panels = 1;
  const std::byte* ahead = nullptr;  // what is wanted next: lines of 64 bytes to fetch meanwhile
  int64_t ahead_lines = 0;
};

template <typename Kernel>
class ChunkLoop {
 public:
  ChunkLoop(const Product& product, const PanelRange& range, std::byte* scratch)
      : p_(product), range_(range), scratch_(reinterpret_cast<float*>(scratch)), blocks_(product.left_layout.k_blocks()) {}

  void run() {
    for (int64_t begin = range_.col_begin; begin < range_.col_end; begin += p_.panels_per_sweep) {
      const int64_t end = std::min(begin + p_.panels_per_sweep, range_.col_end);
      if (blocks_ == 0) sweep(begin, end, 0);  // K = 0: the sums are zero
      for (int64_t block = 0; block < blocks_; ++block) sweep(begin, end, block);
    }
  }

 private:
  static constexpr int kRows = Kernel::kRows, kCols = Kernel::kCols;
  static constexpr int64_t kLine = 64;
  using Element = typename Kernel::Element;

  /// One K block of the column panels [begin, end).
  void sweep(int64_t begin, int64_t end, int64_t block) {
    for (int64_t col = begin; col < end;) {
      int64_t taken = 1;
      for (int64_t row = range_.row_begin; row < range_.row_end; ++row) {
        const int rows = static_cast<int>(p_.left_layout.first(row + 1) - p_.left_layout.first(row));
        // Several panels at once only where the whole chunk is one short panel: neighbours then differ in columns alone.
        if (range_.row_end - range_.row_begin == 1) taken = std::min<int64_t>(Kernel::panels(rows), end - col);
        tile(row, rows, col, col - begin, static_cast<int>(taken), block);
      }
      col += taken;
    }
  }

  void tile(int64_t row, int rows, int64_t col, int64_t slot, int panels, int64_t block) {
    const int64_t cols = std::min<int64_t>(int64_t{kCols} * panels, p_.n - col * kCols);
    const int64_t c_row = p_.left_layout.first(row);
    const bool first = block == 0, last = block + 1 >= blocks_;
    const bool direct = p_.epilogue.function == nullptr && p_.c.dtype == DType::f32 && cols == int64_t{kCols} * panels &&
                        (Kernel::kExactRows || rows == kRows);
    // Between K blocks the sums wait in C itself or, where that is narrower or cut off, in scratch; f32 both, so nothing is lost.
    const int64_t row_panels = range_.row_end - range_.row_begin;
    const int64_t place = blocks_ > 1 ? slot * row_panels + row - range_.row_begin : 0;
    float* const t = direct ? static_cast<float*>(p_.c.data) + c_row * p_.c.stride + col * kCols : scratch_ + place * kRows * kCols;
    const int64_t stride = direct ? p_.c.stride : kCols;
    const int64_t step = direct ? kCols : (blocks_ > 1 ? row_panels : 1) * kRows * kCols;
    const Tile c{p_.c, p_.epilogue, c_row, rows};
    if (!direct && first && p_.c.accumulate)
      for (int i = 0; i < panels; ++i) c.read(t + i * step, col * kCols + i * kCols, columns(cols, i), kCols, kRows);
    const int64_t depth = blocks_ == 0 ? 0 : p_.left_layout.depth(block);
    const auto* a = reinterpret_cast<const Element*>(p_.left) + (blocks_ == 0 ? 0 : p_.left_layout.offset(block, row));
    const auto* b = reinterpret_cast<const Element*>(p_.right) + (blocks_ == 0 ? 0 : p_.right_layout.offset(block, col));
    // The next panel of B is fetched in equal parts, one with each row panel.
    const int64_t lines = ceil_div(depth * kCols * panels * int64_t{sizeof(Element)}, kLine), share = ceil_div(lines, row_panels);
    const auto* next = reinterpret_cast<const std::byte*>(b + depth * kCols * panels) + (row - range_.row_begin) * share * kLine;
    Kernel::run({.a = a,
                 .b = b,
                 .depth = depth,
                 .tile = t,
                 .stride = stride,
                 .tile_step = step,
                 .zero = first && !p_.c.accumulate,
                 .rows = rows,
                 .panels = panels,
                 .ahead = next,
                 .ahead_lines = share});
    if (!last || direct) return;
    for (int i = 0; i < panels; ++i) c.finish(t + i * step, stride, col * kCols + i * kCols, columns(cols, i));
  }

  static int columns(int64_t cols, int panel) { return static_cast<int>(std::min<int64_t>(kCols, cols - int64_t{panel} * kCols)); }

  const Product& p_;
  const PanelRange& range_;
  float* scratch_;
  int64_t blocks_;
};

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
