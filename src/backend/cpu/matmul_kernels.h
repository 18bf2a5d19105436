// What lies between the driver of the matmul (matmul.cpp: threads, blocks, memory) and the micro-kernels of one instruction set
// (isa/): the layout of packed operands, one call's numbers and a table of functions.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/matmul.h"

namespace muster::cpu {

inline constexpr int64_t kPanelsPerCall = 8;  // row panels whose column sums an epilogue adds up in one place

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

/// A packed operand: [k block][panel][k in block][line in panel], where lines are rows of A or columns of B and a panel holds
/// `width` of them, what is not there padded with zeros. K is padded to the kernel's step and cut into equal blocks that fit the
/// first-level cache. (AMX keeps this order of blocks and panels but puts tiles inside them: isa/amx_pack.h.)
struct PanelLayout {
  int64_t k = 0;        // true depth
  int64_t k_block = 0;  // of every block but the last
  int64_t k_padded = 0;
  int64_t panels = 0, lines = 0;
  int width = 0;
  /// The last two panels hold half of their lines each: a kernel is at its best with some rows, and with one or two far from it. (Not where
  /// the last one alone belongs to another call of an epilogue.)
  bool even = false;

  PanelLayout() = default;
  PanelLayout(int64_t all_lines, int lines_per_panel, int64_t depth, int64_t k_step, int64_t max_k_block, bool even_end = false)
      : k(depth),
        k_padded(round_up(depth, k_step)),
        panels(ceil_div(all_lines, lines_per_panel)),
        lines(all_lines),
        width(lines_per_panel) {
    even = even_end && panels > 1 && panels % kPanelsPerCall != 1;
    k_block = k == 0 ? k_step : round_up(ceil_div(k_padded, ceil_div(k_padded, max_k_block)), k_step);
  }
  [[nodiscard]] int64_t k_blocks() const { return k_padded == 0 ? 0 : ceil_div(k_padded, k_block); }
  [[nodiscard]] int64_t begin(int64_t block) const { return block * k_block; }
  /// Packed depth of a block: the padding counts.
  [[nodiscard]] int64_t depth(int64_t block) const { return std::min(k_block, k_padded - begin(block)); }
  /// First line of a panel; that of the panel after the last one is the number of lines.
  [[nodiscard]] int64_t first(int64_t panel) const {
    if (panel >= panels) return lines;
    return even && panel + 1 == panels ? lines - (lines - (panel - 1) * width) / 2 : panel * width;
  }
  /// Panels before this one are full.
  [[nodiscard]] int64_t first_short() const { return even ? panels - 2 : lines / std::max(width, 1); }
  /// Element at which the part of `panel` in `block` starts.
  [[nodiscard]] int64_t offset(int64_t block, int64_t panel) const { return (begin(block) * panels + panel * depth(block)) * width; }
  [[nodiscard]] int64_t elements() const { return k_padded * panels * width; }
};

/// Either operand seen as lines of k values: element (line, k) lies at data[line * stride + k], or at data[k * stride + line]
/// when the lines, not k, are contiguous.
struct PackSource {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  int64_t lines = 0, stride = 0;
  bool k_contiguous = false;
  const Prologue* made = nullptr;  // instead of data: its lines from first_line on
  int64_t first_line = 0;
};

/// One product over packed operands.
struct Product {
  PanelLayout left_layout, right_layout;
  const std::byte *left = nullptr, *right = nullptr;
  int64_t m = 0, n = 0;
  Result c;
  Epilogue epilogue;
  int64_t panels_per_sweep = 1;  // column panels that one sweep over the K blocks covers
};

/// A rectangle of panels that one thread computes.
struct PanelRange {
  int64_t row_begin = 0, row_end = 0, col_begin = 0, col_end = 0;
};

struct MatmulKernels {
  int rows = 0, cols = 0;    // of the tile of C one micro-kernel computes: the widths of the panels
  int k_step = 1;            // packed K is a multiple of it
  int64_t max_k_block = 0;   // so that a right panel's block stays in the first-level cache
  bool even_rows = false;    // of short panels: PanelLayout::even
  size_t element_bytes = 4;  // of a packed element
  int64_t flops_per_ns = 0;  // rough speed of a core: how much work makes a chunk worth handing out

  /// Packs block `k_block` of panels [panel_begin, panel_end) into `packed`, which has the layout given.
  using Pack = void (*)(const PackSource& source, const PanelLayout& layout, int64_t k_block, int64_t panel_begin, int64_t panel_end,
                        std::byte* packed);
  Pack pack_left = nullptr, pack_right = nullptr;
  /// Computes a rectangle of C whole: all of K and the epilogue. `scratch` has scratch_bytes(...).
  void (*multiply)(const Product& product, const PanelRange& range, std::byte* scratch) = nullptr;

  [[nodiscard]] PanelLayout left_layout(int64_t m, int64_t k) const { return {m, rows, k, k_step, max_k_block, even_rows}; }
  [[nodiscard]] PanelLayout right_layout(int64_t n, int64_t k) const { return {n, cols, k, k_step, max_k_block}; }
  [[nodiscard]] int64_t scratch_bytes(int64_t row_panels, int64_t col_panels) const { return row_panels * rows * col_panels * cols * 4; }
};

/// The products of matmul.h with the kernels given, whatever this machine would choose.
PackedMatrix pack(const Operand& b, Math math, const MatmulKernels& kernels, ThreadPool& pool);
void matmul(const Operand& a, const Operand& b, const MatmulKernels& kernels, const Result& c, const Epilogue& epilogue, ThreadPool& pool,
            Workspace& workspace, const Blocking& blocking = {});

namespace avx2 {
const MatmulKernels& f32_kernels(Math math);
}
namespace avx512 {
const MatmulKernels& f32_kernels(Math math);
}
namespace amx {
const MatmulKernels& bf16_kernels();
}

}  // namespace muster::cpu
