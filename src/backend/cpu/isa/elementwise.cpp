// Element-wise kernels: unary, binary with broadcasts, scale, convert, fill, select, dropout.
#include "backend/cpu/isa/activations.h"
#include "backend/cpu/isa/dropout_bits.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {
namespace {

/// out[i] = f(x[i]).
template <typename From, typename To, typename F>
void map(const Context& context, const From* x, To* out, int64_t n, const F& f) {
  parallel_ranges(context, n, kChunkElements, [&](int64_t begin, int64_t end, int) {
    each_vector(end - begin, [&](int64_t i, int count) { store_n(out + begin + i, f(load_n(x + begin + i, count)), count); });
  });
}

template <typename T, typename F>
void map2(const Context& context, Right right, const T* a, const T* b, T* out, int64_t rows, int64_t width, const F& f) {
  if (right == Right::same) {
    parallel_ranges(context, rows * width, kChunkElements, [&](int64_t begin, int64_t end, int) {
      each_vector(end - begin, [&](int64_t i, int count) {
        store_n(out + begin + i, f(load_n(a + begin + i, count), load_n(b + begin + i, count)), count);
      });
    });
    return;
  }
  if (right == Right::scalar) {
    if (rows * width == 0) return;
    const VecF value = splat(to_float(*b));
    map(context, a, out, rows * width, [=](VecF x) { return f(x, value); });
    return;
  }
  parallel_ranges(context, rows, rows_per_chunk(width), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const T* x = a + r * width;
      T* y = out + r * width;
      if (right == Right::row) {
        each_vector(width, [&](int64_t i, int count) { store_n(y + i, f(load_n(x + i, count), load_n(b + i, count)), count); });
      } else {
        const VecF value = splat(to_float(b[r]));
        each_vector(width, [&](int64_t i, int count) { store_n(y + i, f(load_n(x + i, count), value), count); });
      }
    }
  });
}

template <typename T>
void unary_of(const Context& context, Unary op, const T* x, T* out, int64_t n) {
  const auto run = [&](const auto& f) { map(context, x, out, n, f); };
  switch (op) {
    case Unary::neg: return run([](VecF v) { return -v; });
    case Unary::exp: return run([](VecF v) { return exp(v); });
    case Unary::log: return run([](VecF v) { return log(v); });
    case Unary::sqrt: return run([](VecF v) { return sqrt(v); });
    case Unary::rsqrt: return run([](VecF v) { return 1.0f / sqrt(v); });
    case Unary::tanh: return run([](VecF v) { return tanh(v); });
    case Unary::erf: return run([](VecF v) { return erf(v); });
    case Unary::gelu: return run([](VecF v) { return gelu(v); });
    case Unary::gelu_tanh: return run([](VecF v) { return gelu_tanh(v); });
  }
}

template <typename T>
void binary_of(const Context& context, Binary op, Right right, const T* a, const T* b, T* out, int64_t rows, int64_t width) {
  const auto run = [&](const auto& f) { map2(context, right, a, b, out, rows, width, f); };
  switch (op) {
    case Binary::add: return run([](VecF x, VecF y) { return x + y; });
    case Binary::sub: return run([](VecF x, VecF y) { return x - y; });
    case Binary::mul: return run([](VecF x, VecF y) { return x * y; });
    case Binary::div: return run([](VecF x, VecF y) { return x / y; });
    case Binary::maximum: return run([](VecF x, VecF y) { return maximum(x, y); });
    case Binary::gelu_grad: return run([](VecF x, VecF ct) { return ct * gelu_slope(x); });
    case Binary::gelu_tanh_grad: return run([](VecF x, VecF ct) { return ct * gelu_tanh_slope(x); });
    case Binary::tanh_grad: return run([](VecF y, VecF ct) { return ct * (1.0f - y * y); });
  }
}

}  // namespace

void unary(const Context& context, Unary op, DType dtype, const void* x, void* out, int64_t n) {
  with_dtype(dtype, [&](auto t) { unary_of(context, op, static_cast<const decltype(t)*>(x), static_cast<decltype(t)*>(out), n); });
}

void binary(const Context& context, Binary op, Right right, DType dtype, const void* a, const void* b, void* out, int64_t rows,
            int64_t width) {
  with_dtype(dtype, [&](auto t) {
    using T = decltype(t);
    binary_of(context, op, right, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(out), rows, width);
  });
}

void scale(const Context& context, DType dtype, const void* x, float factor, void* out, int64_t n) {
  with_dtype(dtype, [&](auto t) {
    map(context, static_cast<const decltype(t)*>(x), static_cast<decltype(t)*>(out), n, [f = splat(factor)](VecF v) { return v * f; });
  });
}

void convert(const Context& context, DType from, const void* x, DType to, void* out, int64_t n) {
  with_dtype(from, [&](auto f) {
    with_dtype(
        to, [&](auto t) { map(context, static_cast<const decltype(f)*>(x), static_cast<decltype(t)*>(out), n, [](VecF v) { return v; }); });
  });
}

void fill(const Context& context, DType dtype, float value, void* out, int64_t n) {
  with_dtype(dtype, [&](auto t) {
    auto* y = static_cast<decltype(t)*>(out);
    parallel_ranges(context, n, kChunkElements, [&](int64_t begin, int64_t end, int) {
      each_vector(end - begin, [&](int64_t i, int count) { store_n(y + begin + i, splat(value), count); });
    });
  });
}

void select(const Context& context, DType dtype, const uint8_t* condition, const void* a, const void* b, void* out, int64_t n) {
  with_dtype(dtype, [&](auto t) {
    using T = decltype(t);
    const auto* x = static_cast<const T*>(a);
    const auto* y = static_cast<const T*>(b);
    auto* z = static_cast<T*>(out);
    parallel_ranges(context, n, kChunkElements, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) z[i] = condition[i] ? x[i] : y[i];
    });
  });
}

const uint16_t* mask_words(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, uint16_t* room) {
  return dropout_words({{}, seed, stream}, first, n, room);
}

void dropout(const Context& context, DType dtype, const Dropout& mask, const void* x, void* out, int64_t n) {
  if (mask.rate.threshold == 0) return convert(context, dtype, x, dtype, out, n);
  with_dtype(dtype, [&](auto t) {
    const auto* from = static_cast<const decltype(t)*>(x);
    auto* to = static_cast<decltype(t)*>(out);
    parallel_ranges(context, n, kChunkElements, [&](int64_t begin, int64_t end, int) {
      constexpr int64_t kPiece = 1024;
      uint16_t buffer[dropout_buffer(kPiece)];
      for (int64_t p = begin; p < end; p += kPiece) {
        const int64_t length = smaller(kPiece, end - p);
        const uint16_t* words = dropout_words(mask, static_cast<uint64_t>(p), length, buffer);
        each_vector(length, [&](int64_t i, int count) {
          store_n(to + p + i, load_n(from + p + i, count) * dropout_factors(mask.rate, words + i), count);
        });
      }
    });
  });
}

float fma_probe(int64_t turns) {
  VecF sums[kProbeChains];
  for (int i = 0; i < kProbeChains; ++i) sums[i] = splat(static_cast<float>(i));
  const VecF a = splat(0.999f), b = splat(0.001f);
  for (int64_t t = 0; t < turns; ++t)
#pragma GCC unroll 16
    for (int i = 0; i < kProbeChains; ++i) sums[i] = fma(sums[i], a, b);
  VecF total{};
  for (const VecF& s : sums) total += s;
  return sum(total);
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
