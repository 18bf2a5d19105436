// The f32 micro-kernel and its packing: 6x16 of C in twelve 8-lane registers, 14x32 in twenty-eight 16-lane ones. Each element of C
// is one register lane that takes one FMA per k, k rising, whatever the number of rows: that is what keeps bits the same.
#include "backend/cpu/isa/matmul_chunk.h"
#include "backend/cpu/isa/transpose.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {
namespace {

constexpr int kTileRows = kLanes == 8 ? 6 : 14;
constexpr int kVectors = 2;  // of one row of the tile

struct F32Kernel {
  using Element = float;
  static constexpr int kRows = kTileRows, kCols = kVectors * kLanes;
  static constexpr bool kExactRows = true;

  /// With one or two rows a panel has too few independent chains to hide the FMA's latency: neighbours are computed along.
  static constexpr int64_t panels(int rows) { return rows <= 2 ? 2 : 1; }

  template <int kLive, int kPanels>
  [[gnu::noinline]] static void tile(const Step<float>& s) {
    const float *a = s.a, *b = s.b;
    const int64_t depth = s.depth, b_step = depth * kCols;
    const bool zero = s.zero;
    VecF sums[kLive][kPanels * kVectors];
    const auto place = [&](int row, int v) { return s.tile + row * s.stride + v / kVectors * s.tile_step + v % kVectors * kLanes; };
#pragma GCC unroll 16
    for (int i = 0; i < kLive; ++i)
#pragma GCC unroll 8
      for (int v = 0; v < kPanels * kVectors; ++v) sums[i][v] = zero ? VecF{} : load(place(i, v));
    // The rows of C are written at the end; they are asked for here already.
#pragma GCC unroll 16
    for (int i = 0; i < kLive; ++i)
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) __builtin_prefetch(s.tile + i * s.stride + p * s.tile_step, 1, 3);
    const auto step = [&]() __attribute__((always_inline)) {
      VecF right[kPanels * kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kPanels * kVectors; ++v) right[v] = load(b + v / kVectors * b_step + v % kVectors * kLanes);
#pragma GCC unroll 16
      for (int i = 0; i < kLive; ++i) {
        const VecF left = a[i] - VecF{};
#pragma GCC unroll 8
        for (int v = 0; v < kPanels * kVectors; ++v) sums[i][v] = fma(left, right[v], sums[i][v]);
      }
      a += kRows;
      b += kCols;
    };
    // Ahead of one or two rows runs B itself; with more, this call's share of the next panel is fetched along, as many lines a k as
    // B has: no faster than B is used up.
    constexpr bool kStreaming = kPanels > 1;
    constexpr int kLinesPerK = kPanels * kCols / 16, kDistance = 16;
    const std::byte* ahead = s.ahead;
    int64_t k = 0;
    if constexpr (kStreaming) {
      for (; k < depth; ++k) {
#pragma GCC unroll 8
        for (int line = 0; line < kLinesPerK; ++line) {
          constexpr int kLinesPerPanel = kCols / 16;
          __builtin_prefetch(b + line / kLinesPerPanel * b_step + kDistance * kCols + line % kLinesPerPanel * 16, 0, 3);
        }
        step();
      }
    } else {
      const int64_t fours = depth / 4, slow = s.ahead_lines * 8 >= depth && s.ahead_lines <= fours * kLinesPerK ? fours : 0;
      for (int64_t i = 0; i < slow; ++i) {
        if (i * kLinesPerK < s.ahead_lines) {
#pragma GCC unroll 8
          for (int line = 0; line < kLinesPerK; ++line) __builtin_prefetch(ahead + 64 * line, 0, 2);
        }
        ahead += 64 * kLinesPerK;
        step();
        step();
        step();
        step();
      }
      k = slow * 4;
      if (slow == 0)
        for (const int64_t end = std::min(depth, ceil_div(s.ahead_lines, kLinesPerK)); k < end; ++k) {
#pragma GCC unroll 8
          for (int line = 0; line < kLinesPerK; ++line) __builtin_prefetch(ahead + 64 * line, 0, 2);
          ahead += 64 * kLinesPerK;
          step();
        }
    }
#pragma GCC unroll 2
    for (; k < depth; ++k) step();
#pragma GCC unroll 16
    for (int i = 0; i < kLive; ++i)
#pragma GCC unroll 8
      for (int v = 0; v < kPanels * kVectors; ++v) store(place(i, v), sums[i][v]);
  }

  static void run(const Step<float>& s) {
    if (s.rows == kRows) return tile<kRows, 1>(s);
    if (s.rows == 1 && s.panels == 2) return tile<1, 2>(s);
    if (s.rows == 2 && s.panels == 2) return tile<2, 2>(s);
    Step<float> one = s;
    for (int i = 0; i < s.panels; ++i, one.b += s.depth * kCols, one.tile += s.tile_step) short_tile<kRows - 1>(one);
  }

  template <int kLive>
  static void short_tile(const Step<float>& s) {
    if (s.rows == kLive) return tile<kLive, 1>(s);
    if constexpr (kLive > 1) short_tile<kLive - 1>(s);
  }
};

template <bool kRound>
VecF rounded(VecF x) {
  if constexpr (!kRound) return x;
  BF16 narrow[kLanes];
  store(narrow, x);
  return load(narrow);
}

template <bool kRound, typename T>
VecF load_lines(const T* p, int live) {
  return rounded < kRound && sizeof(T) == 4 > (live >= kLanes ? load(p) : live > 0 ? load_part(p, live) : VecF{});
}

/// Lines along K: squares of kLanes lines are turned in registers.
template <int kWidth, bool kRound, typename T>
void pack_turned(const PackSource& s, const PanelLayout& layout, int64_t block, int64_t panel, float* out) {
  const int64_t k0 = layout.begin(block), depth = layout.depth(block);
  for (int first = 0; first < kWidth; first += kLanes) {
    const int width = std::min(kWidth - first, kLanes);
    const int64_t line = layout.first(panel) + first;
    const T* from = reinterpret_cast<const T*>(s.data) + line * s.stride + k0;
    const int lines = static_cast<int>(std::clamp<int64_t>(layout.first(panel + 1) - line, 0, width));
    for (int64_t k = 0; k < depth; k += kLanes) {
      const int live = static_cast<int>(std::min<int64_t>(depth - k, kLanes));
      VecF square[kLanes];
      for (int i = 0; i < kLanes; ++i) square[i] = i < lines ? load_lines<kRound>(from + i * s.stride + k, live) : VecF{};
      transpose(square);
      // A narrow panel's store runs into the next k, which is written after it; the last k must not run out of its panel.
      for (int i = 0; i < live; ++i) {
        float* to = out + (k + i) * kWidth + first;
        width == kLanes || k + i + 1 < depth ? store(to, square[i]) : store_part(to, square[i], width);
      }
    }
  }
}

/// Lines side by side: each k is a row that is cut among the panels.
template <int kWidth, bool kRound, typename T>
void pack_rows(const PackSource& s, const PanelLayout& layout, int64_t block, int64_t begin, int64_t end, float* packed) {
  constexpr int kReach = (kWidth + kLanes - 1) / kLanes * kLanes;  // lines that whole vectors touch
  const int64_t k0 = layout.begin(block), depth = layout.depth(block);
  const int64_t reaching = s.lines < kReach ? 0 : (s.lines - kReach) / kWidth + 1;
  const int64_t whole = std::clamp(std::min(reaching, layout.first_short()), begin, end);
  for (int64_t k = 0; k < depth; ++k) {
    const T* row = reinterpret_cast<const T*>(s.data) + (k0 + k) * s.stride;
    float* to = packed + layout.offset(block, begin) + k * kWidth;
    const bool last = k + 1 == depth;
    int64_t panel = begin;
    if (!last || kReach == kWidth) {  // what a store puts beyond its panel's width is the next k, written after it
      for (; panel < whole; ++panel, to += depth * kWidth)
        for (int first = 0; first < kWidth; first += kLanes) store(to + first, load_lines<kRound>(row + panel * kWidth + first, kLanes));
    }
    for (; panel < end; ++panel, to += depth * kWidth)
      for (int first = 0; first < kWidth; first += kLanes) {
        const int64_t line = layout.first(panel) + first;
        const int width = std::min(kWidth - first, kLanes),
                  live = static_cast<int>(std::clamp<int64_t>(layout.first(panel + 1) - line, 0, std::min(width, kLanes)));
        const VecF v = load_lines<kRound>(row + line, live);
        width == kLanes || !last ? store(to + first, v) : store_part(to + first, v, width);
      }
  }
}

template <int kWidth, bool kRound>
void pack(const PackSource& s, const PanelLayout& layout, int64_t block, int64_t begin, int64_t end, std::byte* packed) {
  float* out = reinterpret_cast<float*>(packed);
  const auto with_type = [&]<typename T>(T) {
    if (!s.k_contiguous) return pack_rows<kWidth, kRound, T>(s, layout, block, begin, end, out);
    for (int64_t panel = begin; panel < end; ++panel)
      pack_turned<kWidth, kRound, T>(s, layout, block, panel, out + layout.offset(block, panel));
  };
  s.dtype == DType::f32 ? with_type(float{}) : with_type(BF16{});
}

void multiply(const Product& product, const PanelRange& range, std::byte* scratch) { ChunkLoop<F32Kernel>(product, range, scratch).run(); }

template <bool kRound>
constexpr MatmulKernels table() {
  return {.rows = kTileRows,
          .cols = F32Kernel::kCols,
          .k_step = 1,
          .max_k_block = kLanes == 8 ? 384 : 256,  // 24 KB of a 32 KB cache, 32 KB of 48
          .even_rows = true,
          .element_bytes = 4,
          .flops_per_ns = kLanes == 8 ? 100 : 160,
          .pack_left = pack<kTileRows, kRound>,
          .pack_right = pack<F32Kernel::kCols, kRound>,
          .multiply = multiply};
}

}  // namespace

const MatmulKernels& f32_kernels(Math math) {
  static constexpr MatmulKernels plain = table<false>(), rounding = table<true>();
  return math == Math::f32 ? plain : rounding;
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
