// Layer norm and its backward.
#include "backend/cpu/isa/dropout_bits.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {
namespace {

constexpr int64_t kMaxPartials = 64;  // sums over rows: at most this many partial sums, of at least kMinRows rows each
constexpr int64_t kMinRows = 32;

template <typename T>
void forward_row(const LayerNorm& p, int64_t r, float* row) {
  const T* x = static_cast<const T*>(p.x) + r * p.width;
  T* out = static_cast<T*>(p.out) + r * p.width;
  const auto n = static_cast<float>(p.width);
  const float mean = sum_vectors(p.width,
                                 [&](int64_t i, int count) {
                                   const VecF v = load_n(x + i, count);
                                   store(row + i, v);
                                   return v;
                                 }) /
                     n;
  const float variance = sum_vectors(p.width,
                                     [&](int64_t i, int count) {
                                       const VecF d = keep_lanes(load(row + i) - mean, count, 0.0f);
                                       return d * d;
                                     }) /
                         n;
  const float rstd = 1.0f / __builtin_sqrtf(variance + p.eps);
  each_vector(p.width, [&](int64_t i, int count) {
    store_n(out + i, fma((load(row + i) - mean) * rstd, load_n(p.gamma + i, count), load_n(p.beta + i, count)), count);
  });
  if (p.mean != nullptr) p.mean[r] = mean;
  if (p.rstd != nullptr) p.rstd[r] = rstd;
}

/// dx of one row; adds the row to the partial sums of dgamma and dbeta.
template <typename T>
void backward_row(const LayerNormGrad& p, int64_t r, float* dgamma, float* dbeta) {
  const T* ct = static_cast<const T*>(p.ct) + r * p.width;
  const T* input = static_cast<const T*>(p.input) + r * p.width;
  T* dx = static_cast<T*>(p.dx) + r * p.width;
  const float mean = p.mean[r], rstd = p.rstd[r];
  VecF sum_g{}, sum_gx{};
  each_vector(p.width, [&](int64_t i, int count) {  // lanes beyond count hold ct = 0
    const VecF c = load_n(ct + i, count), xhat = (load_n(input + i, count) - mean) * rstd, g = c * load_n(p.gamma + i, count);
    const VecF cx = keep_lanes(c * xhat, count, 0.0f), gx = keep_lanes(g * xhat, count, 0.0f);
    store_n(dgamma + i, load_n(dgamma + i, count) + cx, count);
    store_n(dbeta + i, load_n(dbeta + i, count) + c, count);
    sum_g += g;
    sum_gx += gx;
  });
  const auto n = static_cast<float>(p.width);
  const float mean_g = sum(sum_g) / n, mean_gx = sum(sum_gx) / n;
  each_vector(p.width, [&](int64_t i, int count) {
    const VecF xhat = (load_n(input + i, count) - mean) * rstd, g = load_n(ct + i, count) * load_n(p.gamma + i, count);
    store_n(dx + i, rstd * ((g - mean_g) - xhat * mean_gx), count);
  });
}

template <typename T>
void backward(const Context& context, const LayerNormGrad& p) {
  const int64_t rows = larger(kMinRows, (p.rows + kMaxPartials - 1) / kMaxPartials), chunks = (p.rows + rows - 1) / rows;
  auto* partials = reinterpret_cast<float*>(scratch(context.workspace, static_cast<size_t>(chunks * 2 * p.width) * sizeof(float)));
  parallel_ranges(context, p.rows, rows, [&](int64_t begin, int64_t end, int) {
    float* dgamma = partials + begin / rows * 2 * p.width;
    float* dbeta = dgamma + p.width;
    for (int64_t i = 0; i < 2 * p.width; ++i) dgamma[i] = 0.0f;
    for (int64_t r = begin; r < end; ++r) backward_row<T>(p, r, dgamma, dbeta);
  });
  const auto reduce = [&](const float* first, float* out, int64_t begin, int64_t end) {
    each_vector(end - begin, [&](int64_t i, int count) {
      VecF total = p.accumulate ? load_n(out + begin + i, count) : VecF{};
      for (int64_t c = 0; c < chunks; ++c) total += load_n(first + c * 2 * p.width + begin + i, count);
      store_n(out + begin + i, total, count);
    });
  };
  parallel_ranges(context, p.width, 256, [&](int64_t begin, int64_t end, int) {
    reduce(partials, p.dgamma, begin, end);
    reduce(partials + p.width, p.dbeta, begin, end);
  });
}

}  // namespace

void layer_norm(const Context& context, const LayerNorm& p) {
  if (p.width == 0) return;
  const int64_t padded = ceil_to(p.width, 16);
  auto* rows =
      reinterpret_cast<float*>(scratch(context.workspace, static_cast<size_t>(thread_count(context.pool) * padded) * sizeof(float)));
  with_dtype(p.dtype, [&](auto t) {
    parallel_ranges(context, p.rows, rows_per_chunk(p.width), [&](int64_t begin, int64_t end, int thread) {
      for (int64_t r = begin; r < end; ++r) forward_row<decltype(t)>(p, r, rows + thread * padded);
    });
  });
}

void layer_norm_grad(const Context& context, const LayerNormGrad& p) {
  with_dtype(p.dtype, [&](auto t) { backward<decltype(t)>(context, p); });
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
