// Softmax cross entropy with label smoothing, its gradient, and softmax alone.
#include "backend/cpu/isa/loops.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {
namespace {

float log1(float x) { return log(splat(x))[0]; }
float exp1(float x) { return exp_flushed(splat(x))[0]; }

/// Sum of exp(x - shift) over x [n].
template <typename T>
float sum_exp(const T* x, int64_t n, float shift) {
  return sum_vectors(n, [&](int64_t i, int count) { return keep_lanes(exp_flushed(load_n(x + i, count) - shift), count, 0.0f); });
}

template <typename T>
void loss_row(const CrossEntropy& p, int64_t r) {
  const T* x = static_cast<const T*>(p.logits) + r * p.classes;
  const float largest = max_of(x, p.classes), lse = largest + log1(sum_exp(x, p.classes, largest));
  if (p.lse != nullptr) p.lse[r] = lse;
  const int32_t label = p.labels[r];
  if (label < 0) {
    p.losses[r] = 0.0f;
  } else if (label >= p.classes) {
    p.losses[r] = __builtin_nanf("");
  } else {
    float loss = (1.0f - p.smoothing) * (lse - to_float(x[label]));
    if (p.smoothing != 0.0f) {
      const float mean = sum_vectors(p.classes, [&](int64_t i, int count) { return load_n(x + i, count); }) / static_cast<float>(p.classes);
      loss += p.smoothing * (lse - mean);
    }
    p.losses[r] = loss;
  }
}

template <typename T>
void grad_row(const CrossEntropyGrad& p, int64_t r) {
  const T* x = static_cast<const T*>(p.logits) + r * p.classes;
  T* d = static_cast<T*>(p.d_logits) + r * p.classes;
  const int32_t label = p.labels[r];
  if (label < 0 || label >= p.classes) {
    const VecF value = splat(label < 0 ? 0.0f : __builtin_nanf(""));
    each_vector(p.classes, [&](int64_t i, int count) { store_n(d + i, value, count); });
    return;
  }
  const float lse = p.lse[r], ct = p.ct[r], spread = p.smoothing / static_cast<float>(p.classes);
  const float at_label = ct * (exp1(to_float(x[label]) - lse) - spread - (1.0f - p.smoothing));
  each_vector(p.classes, [&](int64_t i, int count) { store_n(d + i, ct * (exp_flushed(load_n(x + i, count) - lse) - spread), count); });
  set(d[label], at_label);
}

template <typename T>
void softmax_row(const T* x, T* out, int64_t n) {
  const float largest = max_of(x, n), inverse = 1.0f / sum_exp(x, n, largest);
  each_vector(n, [&](int64_t i, int count) { store_n(out + i, exp_flushed(load_n(x + i, count) - largest) * inverse, count); });
}

}  // namespace

void cross_entropy(const Context& context, const CrossEntropy& p) {
  with_dtype(p.dtype, [&](auto t) {
    parallel_ranges(context, p.rows, rows_per_chunk(p.classes), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) loss_row<decltype(t)>(p, r);
    });
  });
}

void cross_entropy_grad(const Context& context, const CrossEntropyGrad& p) {
  with_dtype(p.dtype, [&](auto t) {
    parallel_ranges(context, p.rows, rows_per_chunk(p.classes), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) grad_row<decltype(t)>(p, r);
    });
  });
}

void softmax(const Context& context, DType dtype, const void* x, void* out, int64_t rows, int64_t width) {
  with_dtype(dtype, [&](auto t) {
    using T = decltype(t);
    parallel_ranges(context, rows, rows_per_chunk(width), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) softmax_row(static_cast<const T*>(x) + r * width, static_cast<T*>(out) + r * width, width);
    });
  });
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
