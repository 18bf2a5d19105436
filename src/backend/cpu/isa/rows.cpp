// Rows and reductions: gather, scatter-add, sums and maxima over rows, columns and everything, transpose.
#include "backend/cpu/isa/transpose_tile.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

void gather_rows(const Context& context, DType dtype, const void* table, const int32_t* ids, void* out, int64_t n, int64_t width) {
  if (width == 0) return;
  const size_t bytes = static_cast<size_t>(width) * size_of(dtype);
  parallel_ranges(context, n, rows_per_chunk(width), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(static_cast<char*>(out) + static_cast<size_t>(i) * bytes,
                  static_cast<const char*>(table) + static_cast<size_t>(ids[i]) * bytes, bytes);
  });
}

void scatter_add_rows(const Context& context, DType dtype, const void* rows, const int32_t* ids, float* table, int64_t n, int64_t width) {
  with_dtype(dtype, [&](auto t) {
    const auto* x = static_cast<const decltype(t)*>(rows);
    // A thread owns columns, not rows: repeated ids then need no locks and add up in the order of i.
    parallel_ranges(context, width, 64, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = 0; i < n; ++i) {
        float* to = table + ids[i] * width;
        const auto* from = x + i * width;
        each_vector(end - begin, [&](int64_t c, int count) {
          store_n(to + begin + c, load_n(to + begin + c, count) + load_n(from + begin + c, count), count);
        });
      }
    });
  });
}

void column_sum(const Context& context, DType dtype, const void* x, float* out, int64_t rows, int64_t width, bool accumulate) {
  constexpr int64_t kMinRows = 64, kMaxPartials = 32;
  const int64_t step = larger(kMinRows, (rows + kMaxPartials - 1) / kMaxPartials), chunks = (rows + step - 1) / step;
  auto* partials = reinterpret_cast<float*>(scratch(context.workspace, static_cast<size_t>(chunks * width) * sizeof(float)));
  with_dtype(dtype, [&](auto t) {
    const auto* from = static_cast<const decltype(t)*>(x);
    parallel_ranges(context, rows, step, [&](int64_t begin, int64_t end, int) {
      float* to = partials + begin / step * width;
      for (int64_t i = 0; i < width; ++i) to[i] = 0.0f;
      for (int64_t r = begin; r < end; ++r)
        each_vector(width,
                    [&](int64_t i, int count) { store_n(to + i, load_n(to + i, count) + load_n(from + r * width + i, count), count); });
    });
  });
  parallel_ranges(context, width, 512, [&](int64_t begin, int64_t end, int) {
    each_vector(end - begin, [&](int64_t i, int count) {
      VecF total = accumulate ? load_n(out + begin + i, count) : VecF{};
      for (int64_t c = 0; c < chunks; ++c) total += load_n(partials + c * width + begin + i, count);
      store_n(out + begin + i, total, count);
    });
  });
}

void row_sum(const Context& context, DType dtype, const void* x, float* out, int64_t rows, int64_t width) {
  with_dtype(dtype, [&](auto t) {
    const auto* from = static_cast<const decltype(t)*>(x);
    parallel_ranges(context, rows, rows_per_chunk(width), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r)
        out[r] = sum_vectors(width, [&](int64_t i, int count) { return load_n(from + r * width + i, count); });
    });
  });
}

void row_max(const Context& context, DType dtype, const void* x, float* out, int64_t rows, int64_t width) {
  with_dtype(dtype, [&](auto t) {
    const auto* from = static_cast<const decltype(t)*>(x);
    parallel_ranges(context, rows, rows_per_chunk(width), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        VecF nan{};  // the NaN lanes of the row: max_of may lose them
        each_vector(width, [&](int64_t i, int count) {
          const VecF v = load_n(from + r * width + i, count);
          nan = v == v ? nan : v;
        });
        const float broken = sum(nan);
        out[r] = broken == broken ? max_of(from + r * width, width) : broken;
      }
    });
  });
}

float sum(const Context& context, DType dtype, const void* x, int64_t n) {
  const int64_t chunks = (n + kChunkElements - 1) / kChunkElements;
  auto* partials = reinterpret_cast<float*>(scratch(context.workspace, static_cast<size_t>(chunks) * sizeof(float)));
  with_dtype(dtype, [&](auto t) {
    const auto* from = static_cast<const decltype(t)*>(x);
    parallel_ranges(context, n, kChunkElements, [&](int64_t begin, int64_t end, int) {
      partials[begin / kChunkElements] = sum_vectors(end - begin, [&](int64_t i, int count) { return load_n(from + begin + i, count); });
    });
  });
  double total = 0.0;
  for (int64_t c = 0; c < chunks; ++c) total += static_cast<double>(partials[c]);
  return static_cast<float>(total);
}

void transpose(const Context& context, DType dtype, const void* x, void* out, int64_t rows, int64_t width) {
  with_dtype(dtype, [&](auto t) {
    using T = decltype(t);
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(out);
    parallel_ranges(context, width, 64, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = 0; r < rows; r += kLanes)
        for (int64_t c = begin; c < end; c += kLanes)
          transpose_tile(from + r * width + c, width, smaller(kLanes, rows - r), smaller(kLanes, end - c), to + c * rows + r, rows,
                         static_cast<int>(smaller(kLanes, rows - r)));
    });
  });
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
