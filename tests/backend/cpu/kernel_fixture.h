// What the kernel tests share: the levels they run at, arrays of either storage type, and comparisons with f64 references.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "backend/cpu/kernels.h"
#include "core/philox.h"

namespace muster::cpu {
namespace lanes16 {
const Kernels& table();  // the 16-lane sources compiled for the base machine (CMakeLists.txt)
}

/// A table of kernels and what to call it.
struct Level {
  std::string name;
  const Kernels* kernels;
};
inline void PrintTo(const Level& level, std::ostream* out) { *out << level.name; }

/// AVX2, the 16-lane source on split vectors, and AVX-512 where the machine has it.
inline std::vector<Level> levels() {
  std::vector<Level> all{{"avx2", &kernels(Isa::avx2)}, {"lanes16", &lanes16::table()}};
  if (detect_cpu().avx512) all.push_back({"avx512", &kernels(Isa::avx512)});
  return all;
}

/// Elements of a storage type, seen as f64.
class Array {
 public:
  Array(DType dtype, size_t n) : dtype_(dtype), n_(n), bytes_(n * size_of(dtype)) {}
  Array(DType dtype, const std::vector<double>& values) : Array(dtype, values.size()) {
    for (size_t i = 0; i < n_; ++i) set(i, values[i]);
  }
  /// Normal numbers times `scale`.
  static Array random(DType dtype, size_t n, uint64_t seed, double scale = 1.0) {
    Philox generator(seed);
    Array a(dtype, n);
    for (size_t i = 0; i < n; ++i) a.set(i, generator.normal() * scale);
    return a;
  }
  [[nodiscard]] size_t size() const { return n_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  void* data() { return bytes_.data(); }
  float* f32() { return reinterpret_cast<float*>(bytes_.data()); }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }
  double operator[](size_t i) const {
    if (dtype_ == DType::bf16) {
      BF16 v;
      std::memcpy(&v, bytes_.data() + i * 2, 2);
      return static_cast<double>(to_f32(v));
    }
    float v;
    std::memcpy(&v, bytes_.data() + i * 4, 4);
    return static_cast<double>(v);
  }
  void set(size_t i, double value) {
    const auto f = static_cast<float>(value);
    const BF16 b = to_bf16(f);
    dtype_ == DType::bf16 ? std::memcpy(bytes_.data() + i * 2, &b, 2) : std::memcpy(bytes_.data() + i * 4, &f, 4);
  }
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> v(n_);
    for (size_t i = 0; i < n_; ++i) v[i] = (*this)[i];
    return v;
  }

 private:
  DType dtype_;
  size_t n_;
  std::vector<std::byte> bytes_;
};

/// |got - want| <= tolerance * max |want| for every element; NaN and infinities must agree.
inline void expect_close(const std::vector<double>& got, const std::vector<double>& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double size = 1e-30;
  for (const double w : want)
    if (std::isfinite(w)) size = std::max(size, std::fabs(w));
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << what << " element " << i << " is " << got[i];
    } else if (std::isinf(want[i])) {
      ASSERT_EQ(got[i], want[i]) << what << " element " << i;
    } else {
      ASSERT_LE(std::fabs(got[i] - want[i]), tolerance * size) << what << " element " << i << ": " << got[i] << ", expected " << want[i];
    }
  }
}
inline void expect_close(const Array& got, const std::vector<double>& want, double tolerance, const std::string& what) {
  expect_close(got.values(), want, tolerance, what);
}
/// Half a unit in the last place of the storage type, doubled, plus room for f32 sums.
inline double tolerance_of(DType dtype) { return dtype == DType::bf16 ? 4.5e-3 : 2e-6; }

/// `value` as the storage type holds it.
inline double stored(DType dtype, double value) {
  const auto f = static_cast<float>(value);
  return static_cast<double>(dtype == DType::bf16 ? to_f32(to_bf16(f)) : f);
}

inline std::string text(DType dtype, std::initializer_list<int64_t> sizes) {
  std::string s(name_of(dtype));
  for (const int64_t n : sizes) s += " " + std::to_string(n);
  return s;
}

/// Central difference of `loss` for each of `x`, in f64.
inline std::vector<double> differences(std::vector<double> x, const std::function<double(const std::vector<double>&)>& loss) {
  std::vector<double> slope(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double h = 1e-5, at = x[i];
    x[i] = at + h;
    const double above = loss(x);
    x[i] = at - h;
    slope[i] = (above - loss(x)) / (2 * h);
    x[i] = at;
  }
  return slope;
}

class KernelTest : public testing::TestWithParam<Level> {
 protected:
  const Kernels& k() { return *GetParam().kernels; }
  KernelContext context() { return {pool_, workspace_}; }

  /// `run` returns all its results; they must be the same bits for 1, 2 and 5 threads.
  void expect_same_bits(const std::function<std::vector<std::byte>(const KernelContext&)>& run) {
    std::vector<std::byte> first;
    for (const int threads : {1, 2, 5}) {
      ThreadPool pool(threads);
      Workspace workspace;
      const auto bits = run({pool, workspace});
      if (threads == 1) first = bits;
      ASSERT_TRUE(bits == first) << threads << " threads give other bits than 1";
    }
  }

 private:
  ThreadPool pool_{2};
  Workspace workspace_;
};

inline std::string level_name(const testing::TestParamInfo<Level>& info) { return info.param.name; }

}  // namespace muster::cpu
