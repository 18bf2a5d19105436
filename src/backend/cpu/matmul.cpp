// Drives the micro-kernels: checks operands, packs them, cuts C into chunks and hands them to the threads. How C is cut depends on
// sizes and caches only, and could not change a bit if it did otherwise (matmul.h).
#include "backend/cpu/matmul.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "backend/cpu/matmul_kernels.h"
#include "core/error.h"

namespace muster::cpu {
namespace {

constexpr int64_t kMaxPacked = int64_t{64} << 20;  // bytes of an operand packed at a time
constexpr int64_t kMaxRows = 512;                  // of one chunk
constexpr int64_t kChunkNs = 10'000;               // work that pays for handing a chunk out
constexpr int64_t kBytesPerNs = 20;                // one core reading from memory
constexpr int64_t kPackChunk = 32 * 1024;          // elements
constexpr int64_t kChunks = 64;                    // enough to keep a handful of threads evenly busy

const CpuInfo& cpu() {
  static const CpuInfo info = detect_cpu();
  return info;
}

void check(const Operand& x, std::string_view name) {
  if (x.made != nullptr) return;
  const int64_t line = x.transposed ? x.rows : x.cols, lines = x.transposed ? x.cols : x.rows;
  if (x.rows < 0 || x.cols < 0 || (lines > 1 && x.stride < line))
    throw Error(ErrorKind::invalid_argument, "[matmul] {} [{}, {}]: a stride of {} is shorter than a line of {}", name, x.rows, x.cols,
                x.stride, line);
  if (x.dtype != DType::f32 && x.dtype != DType::bf16)
    throw Error(ErrorKind::invalid_argument, "[matmul] {} is {}: operands are f32 or bf16", name, name_of(x.dtype));
  if (x.data == nullptr && x.rows > 0 && x.cols > 0) throw Error(ErrorKind::invalid_argument, "[matmul] {} has no data", name);
}

void check(const Operand& a, int64_t k, int64_t n, const Result& c, bool writes_itself) {
  check(a, "the left operand");
  if (a.cols != k) throw Error(ErrorKind::invalid_argument, "[matmul] [{}, {}] times [{}, {}]: inner sizes differ", a.rows, a.cols, k, n);
  if (c.dtype != DType::f32 && c.dtype != DType::bf16)
    throw Error(ErrorKind::invalid_argument, "[matmul] the result is {}: it is f32 or bf16", name_of(c.dtype));
  if (a.rows > 0 && n > 0 && !writes_itself && (c.data == nullptr || (a.rows > 1 && c.stride < n)))
    throw Error(ErrorKind::invalid_argument, "[matmul] the result [{}, {}] has no data or a stride of {}, shorter than a row", a.rows, n,
                c.stride);
}

PackSource source_of(const Operand& x, int64_t lines, bool k_contiguous) {
  return {static_cast<const std::byte*>(x.data), x.dtype, lines, x.stride, k_contiguous, x.made, 0};
}
PackSource left_source(const Operand& a) { return source_of(a, a.rows, !a.transposed); }
PackSource right_source(const Operand& b) { return source_of(b, b.cols, b.transposed); }

/// The lines [begin, end) of a source.
PackSource lines_of(PackSource s, int64_t begin, int64_t end) {
  s.first_line += begin;
  if (begin != 0 && s.made == nullptr) s.data += begin * (s.k_contiguous ? s.stride : 1) * static_cast<int64_t>(size_of(s.dtype));
  s.lines = end - begin;
  return s;
}

/// Packing one operand, cut into units of one K block times some neighbouring panels (neighbours share cache lines of the source).
struct PackJob {
  PackSource source;
  PanelLayout layout;
  MatmulKernels::Pack pack = nullptr;
  std::byte* to = nullptr;
  int64_t panels_per_unit = 1, groups = 0;

  PackJob() = default;
  PackJob(const PackSource& from, const PanelLayout& into, MatmulKernels::Pack function, std::byte* packed)
      : source(from), layout(into), pack(function), to(packed) {
    panels_per_unit = std::max<int64_t>(8, kPackChunk / std::max<int64_t>(1, layout.k_block * layout.width));
    groups = ceil_div(layout.panels, panels_per_unit);
  }
  [[nodiscard]] int64_t units() const { return groups * layout.k_blocks(); }
  void run(int64_t unit, std::byte* room) const {
    const int64_t block = unit / groups, begin = unit % groups * panels_per_unit, end = std::min(begin + panels_per_unit, layout.panels);
    pack(source.made == nullptr ? source : make(block, begin, end, reinterpret_cast<float*>(room)), layout, block, begin, end, to);
  }
  /// Of each thread, for what is made before it is packed.
  [[nodiscard]] size_t room_bytes() const {
    if (source.made == nullptr) return 0;
    const int64_t lines = panels_per_unit * layout.width, depth = layout.k_block;
    return static_cast<size_t>(source.k_contiguous ? lines * room_stride(depth) : depth * room_stride(lines)) * sizeof(float);
  }

 private:
  static int64_t room_stride(int64_t columns) { return round_up(columns, 16); }

  /// Makes the unit's part of the operand in `room`: a source that pack may read there as if the whole operand were in memory.
  [[nodiscard]] PackSource make(int64_t block, int64_t begin, int64_t end, float* room) const {
    const int64_t k0 = layout.begin(block), depth = std::min(layout.depth(block), layout.k - k0), line0 = layout.first(begin),
                  lines = layout.first(end) - line0;
    const int64_t row = source.k_contiguous ? line0 : k0, rows = source.k_contiguous ? lines : depth;
    const int64_t col = source.k_contiguous ? k0 : line0, cols = source.k_contiguous ? depth : lines;
    const int64_t stride = room_stride(cols), first = source.first_line;
    source.made->function(source.made->call, room, stride, row + (source.k_contiguous ? first : 0), rows,
                          col + (source.k_contiguous ? 0 : first), cols);
    PackSource made = source;
    made.dtype = DType::f32, made.stride = stride;
    made.data = reinterpret_cast<std::byte*>(room) - (row * stride + col) * static_cast<int64_t>(sizeof(float));
    return made;
  }
};

void run_packing(const PackJob& left, const PackJob& right, ThreadPool& pool, Workspace* workspace) {
  struct Both {
    const PackJob &left, &right;
    int64_t units, per_chunk;
    const Workspace* room;
  };
  const int64_t units = left.units() + right.units(), elements = left.layout.elements() + right.layout.elements();
  const int64_t chunks = std::clamp<int64_t>(elements / kPackChunk, 1, std::max<int64_t>(units, 1));
  const size_t room = std::max(left.room_bytes(), right.room_bytes());
  MUSTER_ASSERT(room == 0 || workspace != nullptr);
  if (room > 0) workspace->reserve_threads(pool.threads(), room);
  const Both both{left, right, units, ceil_div(units, chunks), room > 0 ? workspace : nullptr};
  pool.parallel_for(ceil_div(units, std::max<int64_t>(both.per_chunk, 1)), [&both](int64_t chunk, int thread) {
    std::byte* const own = both.room == nullptr ? nullptr : both.room->of_thread(thread);
    const int64_t end = std::min(both.units, (chunk + 1) * both.per_chunk), in_left = both.left.units();
    for (int64_t u = chunk * both.per_chunk; u < end; ++u) u < in_left ? both.left.run(u, own) : both.right.run(u - in_left, own);
  });
}

/// How the panels of a product are dealt out: rows_each x cols_each of them a chunk.
struct Cut {
  int64_t rows_each = 1, cols_each = 1, row_chunks = 0, col_chunks = 0;
};

int64_t computed_rows(const MatmulKernels& kernels, int64_t k_block) {
  const int64_t fit =
      static_cast<int64_t>(cpu().l2_bytes) / 2 / std::max<int64_t>(1, k_block * static_cast<int64_t>(kernels.element_bytes));
  return std::max<int64_t>(kernels.rows, std::min(fit, kMaxRows));
}

Cut cut(const MatmulKernels& kernels, const Product& p, const Blocking& blocking) {
  const int64_t l2 = static_cast<int64_t>(cpu().l2_bytes), element = static_cast<int64_t>(kernels.element_bytes);
  const int64_t row_panels = p.left_layout.panels, col_panels = p.right_layout.panels;
  const int64_t wanted = blocking.rows > 0 ? blocking.rows : computed_rows(kernels, p.left_layout.k_block);
  const int64_t max_rows = std::max<int64_t>(1, wanted / kernels.rows);
  Cut c;
  c.row_chunks = ceil_div(row_panels, max_rows);
  c.rows_each = ceil_div(row_panels, c.row_chunks);
  if (p.epilogue.function != nullptr) {  // partial column sums belong to one chunk
    c.rows_each = round_up(c.rows_each, kPanelsPerCall);
    c.row_chunks = ceil_div(row_panels, c.rows_each);
  }
  // Columns: enough chunks for even loads, but none too small to be worth handing out, and their waiting sums take at most a quarter of L2.
  const int64_t k = std::max<int64_t>(1, p.left_layout.k_padded), rows = std::min(p.m, c.rows_each * kernels.rows);
  const int64_t panel_ns =
      k * kernels.cols * std::max(2 * rows * kBytesPerNs, element * kernels.flops_per_ns) / (kernels.flops_per_ns * kBytesPerNs) + 1;
  const int64_t least = ceil_div(kChunkNs, panel_ns), most = std::max<int64_t>(1, l2 / 4 / (c.rows_each * kernels.rows * kernels.cols * 4));
  c.cols_each = std::clamp<int64_t>(std::max(ceil_div(col_panels * c.row_chunks, kChunks), least), 1, std::max(most, least));
  c.col_chunks = ceil_div(col_panels, c.cols_each);
  c.cols_each = ceil_div(col_panels, c.col_chunks);
  c.cols_each += c.cols_each > 1 ? c.cols_each % 2 : 0;  // kernels of few rows take pairs of panels
  c.col_chunks = ceil_div(col_panels, c.cols_each);
  return c;
}

void multiply(const MatmulKernels& kernels, Product& p, ThreadPool& pool, Workspace& workspace, const Blocking& blocking) {
  const Cut c = cut(kernels, p, blocking);
  // Where all of K of a chunk's rows stays in the second-level cache, each column panel is finished at once; else K blocks go outside.
  const int64_t rows_bytes = c.rows_each * kernels.rows * p.left_layout.k_padded * static_cast<int64_t>(kernels.element_bytes);
  const bool rows_stay = c.rows_each > 1 && rows_bytes <= static_cast<int64_t>(cpu().l2_bytes) / 2;
  p.panels_per_sweep = rows_stay ? 1 : c.cols_each;
  workspace.reserve_threads(pool.threads(), static_cast<size_t>(kernels.scratch_bytes(c.rows_each, p.panels_per_sweep)));
  struct Job {
    const MatmulKernels& kernels;
    const Product& p;
    const Workspace& workspace;
    Cut c;
  } const job{kernels, p, workspace, c};
  pool.parallel_for(c.row_chunks * c.col_chunks, [&job](int64_t chunk, int thread) {
    const int64_t row = chunk % job.c.row_chunks * job.c.rows_each, col = chunk / job.c.row_chunks * job.c.cols_each;
    const PanelRange range{row, std::min(row + job.c.rows_each, job.p.left_layout.panels), col,
                           std::min(col + job.c.cols_each, job.p.right_layout.panels)};
    job.kernels.multiply(job.p, range, job.workspace.of_thread(thread));
  });
}

/// Lines of an operand that are packed at a time: a multiple of `width`, kMaxPacked bytes of them or the least there can be.
int64_t lines_at_once(const MatmulKernels& kernels, int64_t k, int64_t width) {
  return std::max<int64_t>(
             1, kMaxPacked / std::max<int64_t>(1, round_up(k, kernels.k_step) * static_cast<int64_t>(kernels.element_bytes) * width)) *
         width;
}

/// Shifted to row `m` and column `n`.
Result at(Result c, int64_t m, int64_t n) {
  if (c.data == nullptr) return c;
  c.data = static_cast<std::byte*>(c.data) + (m * c.stride + n) * static_cast<int64_t>(size_of(c.dtype));
  return c;
}
Epilogue at(Epilogue e, int64_t m, int64_t n) {
  e.row += m, e.col += n;
  return e;
}

/// b is given packed or as it is.
void run(const MatmulKernels& kernels, const Operand& a, const PackedMatrix* packed, const Operand* b, int64_t n, const Result& c,
         const Epilogue& epilogue, ThreadPool& pool, Workspace& workspace, const Blocking& blocking) {
  if (a.rows == 0 || n == 0) return;
  const int64_t k = a.cols, m_step = lines_at_once(kernels, k, kernels.rows * kPanelsPerCall),
                n_step = b != nullptr ? lines_at_once(kernels, k, kernels.cols) : n;
  for (int64_t m0 = 0; m0 < a.rows; m0 += m_step) {
    const int64_t m1 = std::min(a.rows, m0 + m_step);
    for (int64_t n0 = 0; n0 < n; n0 += n_step) {
      const int64_t n1 = std::min(n, n0 + n_step);
      Product p{.left_layout = kernels.left_layout(m1 - m0, k),
                .right_layout = kernels.right_layout(n1 - n0, k),
                .m = m1 - m0,
                .n = n1 - n0,
                .c = at(c, m0, n0),
                .epilogue = at(epilogue, m0, n0)};
      PackJob left, right;
      std::byte* const left_to =
          workspace.shared(Workspace::Slot::left, static_cast<size_t>(p.left_layout.elements()) * kernels.element_bytes);
      p.left = left_to;
      if (n0 == 0) left = PackJob(lines_of(left_source(a), m0, m1), p.left_layout, kernels.pack_left, left_to);
      if (b != nullptr) {
        std::byte* const right_to =
            workspace.shared(Workspace::Slot::right, static_cast<size_t>(p.right_layout.elements()) * kernels.element_bytes);
        p.right = right_to;
        if (m0 == 0 || n_step < n) right = PackJob(lines_of(right_source(*b), n0, n1), p.right_layout, kernels.pack_right, right_to);
      } else {
        p.right = packed->data();
      }
      run_packing(left, right, pool, &workspace);
      multiply(kernels, p, pool, workspace, blocking);
    }
  }
}

}  // namespace

PackedMatrix::PackedMatrix(int64_t k, int64_t n, Math math, const MatmulKernels& kernels)
    : k_(k),
      n_(n),
      math_(math),
      kernels_(&kernels),
      buffer_(static_cast<size_t>(kernels.right_layout(n, k).elements()) * kernels.element_bytes) {}

int64_t epilogue_rows_per_call(Isa isa, Math math) { return kPanelsPerCall * matmul_kernels(isa, math).rows; }

int64_t computed_rows(Isa isa, Math math, int64_t k) {
  const MatmulKernels& kernels = matmul_kernels(isa, math);
  return computed_rows(kernels, kernels.left_layout(1, k).k_block);
}

const MatmulKernels& matmul_kernels(Isa isa, Math math) {
  if (isa == Isa::amx && math == Math::bf16) return amx::bf16_kernels();
  return isa == Isa::avx2 ? avx2::f32_kernels(math) : avx512::f32_kernels(math);
}

PackedMatrix pack(const Operand& b, Math math, const MatmulKernels& kernels, ThreadPool& pool) {
  check(b, "the right operand");
  PackedMatrix packed(b.rows, b.cols, math, kernels);
  repack(packed, b, pool);
  return packed;
}

PackedMatrix pack(const Operand& b, Math math, Isa isa, ThreadPool& pool) { return pack(b, math, matmul_kernels(isa, math), pool); }

void repack(PackedMatrix& packed, const Operand& b, ThreadPool& pool) {
  check(b, "the right operand");
  if (b.rows != packed.k() || b.cols != packed.n())
    throw Error(ErrorKind::invalid_argument, "[matmul] repacking [{}, {}] into the place of [{}, {}]: sizes must not change", b.rows,
                b.cols, packed.k(), packed.n());
  if (b.rows == 0 || b.cols == 0) return;
  const MatmulKernels& kernels = packed.kernels();
  run_packing(PackJob(right_source(b), kernels.right_layout(b.cols, b.rows), kernels.pack_right, packed.data()), PackJob(), pool, nullptr);
}

void matmul(const Operand& a, const PackedMatrix& b, const Result& c, const Epilogue& epilogue, ThreadPool& pool, Workspace& workspace,
            const Blocking& blocking) {
  check(a, b.k(), b.n(), c, epilogue.function != nullptr);
  if (b.n() == 0 || a.rows == 0) return;
  run(b.kernels(), a, &b, nullptr, b.n(), c, epilogue, pool, workspace, blocking);
}

void matmul(const Operand& a, const Operand& b, const MatmulKernels& kernels, const Result& c, const Epilogue& epilogue, ThreadPool& pool,
            Workspace& workspace, const Blocking& blocking) {
  check(b, "the right operand");
  check(a, b.rows, b.cols, c, epilogue.function != nullptr);
  run(kernels, a, nullptr, &b, b.cols, c, epilogue, pool, workspace, blocking);
}

void matmul(const Operand& a, const Operand& b, Math math, Isa isa, const Result& c, const Epilogue& epilogue, ThreadPool& pool,
            Workspace& workspace, const Blocking& blocking) {
  matmul(a, b, matmul_kernels(isa, math), c, epilogue, pool, workspace, blocking);
}

bool amx_self_test() {
  const CpuInfo& info = cpu();
  if (!info.amx_tile || !info.amx_bf16) return false;
  constexpr int64_t kM = 37, kK = 300, kN = 41;  // no multiple of a tile, two K blocks
  std::vector<float> a(kM * kK), b(kK * kN), c(kM * kN);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i * 7 % 31) - 15) / 16;  // exact in bf16
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(i * 11 % 29) - 14) / 16;
  ThreadPool one(1);
  Workspace workspace;
  matmul({a.data(), DType::f32, kM, kK, kK, false}, {b.data(), DType::f32, kK, kN, kN, false}, amx::bf16_kernels(),
         {c.data(), DType::f32, kN, false}, {}, one, workspace);
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) {
      float sum = 0;  // multiples of 1/256 below 2^16: exact in any order
      for (int64_t k = 0; k < kK; ++k) sum += a[static_cast<size_t>(i * kK + k)] * b[static_cast<size_t>(k * kN + j)];
      if (c[static_cast<size_t>(i * kN + j)] != sum) return false;
    }
  return true;
}

}  // namespace muster::cpu
