// Element-wise kernels against f64 formulas: both storage types, odd sizes, broadcasts, special values, dropout bits.
#include "kernel_fixture.h"

namespace muster::cpu {
namespace {

double phi(double x) { return 0.5 * (1.0 + std::erf(x / std::sqrt(2.0))); }
double gelu(double x) { return x * phi(x); }
double gelu_tanh(double x) { return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x))); }
double slope(double (*f)(double), double x) { return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5; }

double unary_reference(Unary op, double x) {
  switch (op) {
    case Unary::neg: return -x;
    case Unary::exp: return std::exp(x);
    case Unary::log: return std::log(x);
    case Unary::sqrt: return std::sqrt(x);
    case Unary::rsqrt: return 1.0 / std::sqrt(x);
    case Unary::tanh: return std::tanh(x);
    case Unary::erf: return std::erf(x);
    case Unary::gelu: return gelu(x);
    case Unary::gelu_tanh: return gelu_tanh(x);
  }
  return 0.0;
}
double binary_reference(Binary op, double a, double b) {
  switch (op) {
    case Binary::add: return a + b;
    case Binary::sub: return a - b;
    case Binary::mul: return a * b;
    case Binary::div: return a / b;
    case Binary::maximum: return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
    case Binary::gelu_grad: return b * slope(gelu, a);
    case Binary::gelu_tanh_grad: return b * slope(gelu_tanh, a);
    case Binary::tanh_grad: return b * (1.0 - a * a);
  }
  return 0.0;
}
constexpr Unary kUnary[] = {Unary::neg,  Unary::exp, Unary::log,  Unary::sqrt,     Unary::rsqrt,
                            Unary::tanh, Unary::erf, Unary::gelu, Unary::gelu_tanh};
constexpr Binary kBinary[] = {
    Binary::add, Binary::sub, Binary::mul, Binary::div, Binary::maximum, Binary::gelu_grad, Binary::gelu_tanh_grad, Binary::tanh_grad};

class ElementwiseTest : public KernelTest {};

TEST_P(ElementwiseTest, UnaryMatchesTheFormula) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const size_t n : {0, 1, 7, 16, 33, 40000})
      for (const Unary op : kUnary) {
        Array x = Array::random(dtype, n, 1 + n, 2.0), out(dtype, n);
        if (n > 0) x.set(0, 1.0);  // so that the largest result is of the size of x: gelu's error is relative to that
        if (op == Unary::log || op == Unary::sqrt || op == Unary::rsqrt)
          for (size_t i = 0; i < n; ++i) x.set(i, std::fabs(x[i]) + 0.01);
        k().unary(context(), op, dtype, x.data(), out.data(), static_cast<int64_t>(n));
        std::vector<double> want(n);
        for (size_t i = 0; i < n; ++i) want[i] = unary_reference(op, x[i]);
        expect_close(out, want, tolerance_of(dtype), text(dtype, {static_cast<int64_t>(op), static_cast<int64_t>(n)}));
        k().unary(context(), op, dtype, x.data(), x.data(), static_cast<int64_t>(n));
        EXPECT_EQ(x.bytes(), out.bytes()) << "in place";
      }
}

TEST_P(ElementwiseTest, BinaryMatchesTheFormulaInEveryBroadcast) {
  const std::pair<int64_t, int64_t> shapes[] = {{0, 5}, {5, 0}, {1, 1}, {3, 7}, {4, 16}, {9, 384}, {70, 770}};
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& [rows, width] : shapes)
      for (const Binary op : kBinary)
        for (const Right right : {Right::same, Right::scalar, Right::row, Right::column}) {
          const int64_t n = rows * width, nb = right == Right::same ? n : right == Right::scalar ? 1 : right == Right::row ? width : rows;
          Array a = Array::random(dtype, static_cast<size_t>(n), 3), b = Array::random(dtype, static_cast<size_t>(nb), 4);
          Array out(dtype, static_cast<size_t>(n));
          if (op == Binary::div)
            for (size_t i = 0; i < b.size(); ++i) b.set(i, b[i] + std::copysign(0.5, b[i]));
          k().binary(context(), op, right, dtype, a.data(), b.data(), out.data(), rows, width);
          std::vector<double> want(static_cast<size_t>(n));
          for (int64_t i = 0; i < n; ++i) {
            const int64_t j = right == Right::same ? i : right == Right::scalar ? 0 : right == Right::row ? i % width : i / width;
            want[static_cast<size_t>(i)] = binary_reference(op, a[static_cast<size_t>(i)], b[static_cast<size_t>(j)]);
          }
          expect_close(out, want, tolerance_of(dtype), text(dtype, {static_cast<int64_t>(op), static_cast<int64_t>(right), rows, width}));
        }
}

TEST_P(ElementwiseTest, SpecialValuesBehaveAsInF64) {
  const float inf = INFINITY, huge = 3e38f, tiny = 1e-45f;
  const std::vector<float> x{inf, -inf, NAN, huge, -huge, tiny, -tiny, 0.0f, 200.0f, -200.0f, 1.0f};
  for (const Unary op : {Unary::exp, Unary::log, Unary::sqrt, Unary::tanh, Unary::erf, Unary::neg, Unary::gelu, Unary::gelu_tanh}) {
    std::vector<float> out(x.size());
    k().unary(context(), op, DType::f32, x.data(), out.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const auto want = static_cast<float>(unary_reference(op, static_cast<double>(x[i])));
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(out[i])) << static_cast<int>(op) << " of " << x[i] << " is " << out[i];
      else if (std::isinf(want) || want == 0.0f)
        EXPECT_EQ(out[i], want) << static_cast<int>(op) << " of " << x[i];
      else
        EXPECT_NEAR(out[i] / want, 1.0f, 1e-5f) << static_cast<int>(op) << " of " << x[i];
    }
  }
  std::vector<float> out(x.size()), one(x.size(), 1.0f), broken(x.size(), NAN);
  k().binary(context(), Binary::maximum, Right::same, DType::f32, x.data(), one.data(), out.data(), 1, static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(std::isnan(x[i]) ? std::isnan(out[i]) : out[i] == std::max(x[i], 1.0f));
  k().binary(context(), Binary::maximum, Right::same, DType::f32, x.data(), broken.data(), out.data(), 1, static_cast<int64_t>(x.size()));
  for (const float v : out) EXPECT_TRUE(std::isnan(v));
}

TEST_P(ElementwiseTest, ConvertRoundsAsTheScalarConversionDoes) {
  std::vector<float> x(70001);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::bit_cast<float>(static_cast<uint32_t>(i * 61357u + 17u));
  std::vector<BF16> narrow(x.size());
  std::vector<float> wide(x.size());
  const auto n = static_cast<int64_t>(x.size());
  k().convert(context(), DType::f32, x.data(), DType::bf16, narrow.data(), n);
  k().convert(context(), DType::bf16, narrow.data(), DType::f32, wide.data(), n);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(narrow[i].bits, to_bf16(x[i]).bits) << x[i];
    ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(to_f32(narrow[i])));
  }
}

TEST_P(ElementwiseTest, ScaleFillSelect) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const size_t n : {0, 1, 19, 20000}) {
      Array a = Array::random(dtype, n, 5), b = Array::random(dtype, n, 6), out(dtype, n);
      k().scale(context(), dtype, a.data(), 0.375f, out.data(), static_cast<int64_t>(n));
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(out[i], stored(dtype, a[i] * 0.375));
      std::vector<uint8_t> condition(n);
      for (size_t i = 0; i < n; ++i) condition[i] = i % 3 == 0 ? static_cast<uint8_t>(i % 5 + 1) : 0;
      k().select(context(), dtype, condition.data(), a.data(), b.data(), out.data(), static_cast<int64_t>(n));
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(out[i], condition[i] != 0 ? a[i] : b[i]);
      k().fill(context(), dtype, -1.5f, out.data(), static_cast<int64_t>(n));
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(out[i], -1.5);
    }
}

TEST_P(ElementwiseTest, DropoutDrawsExactlyTheMaskOfCore) {
  for (const double p : {0.1, 0.5, 0.0, 0.999})
    for (const size_t n : {0, 1, 8, 63, 1024, 40001}) {
      const Dropout mask{dropout_rate(p), 0x123456789abcdefull + n, 0xfedcba9876543210ull};
      Array x(DType::f32, n), out(DType::f32, n);
      for (size_t i = 0; i < n; ++i) x.set(i, 1.0 + static_cast<double>(i % 100));
      k().dropout(context(), DType::f32, mask, x.data(), out.data(), static_cast<int64_t>(n));
      for (size_t i = 0; i < n; ++i)
        ASSERT_EQ(static_cast<float>(out[i]), static_cast<float>(x[i]) * dropout_factor(mask.rate, mask.seed, mask.stream, i)) << i;
    }
}

TEST_P(ElementwiseTest, ThreadsDoNotChangeBits) {
  Array x = Array::random(DType::bf16, 100003, 8);
  const Dropout mask{dropout_rate(0.1), 3, 4};
  expect_same_bits([&](const KernelContext& c) {
    Array out(DType::bf16, x.size());
    k().dropout(c, DType::bf16, mask, x.data(), out.data(), static_cast<int64_t>(x.size()));
    k().unary(c, Unary::gelu, DType::bf16, out.data(), out.data(), static_cast<int64_t>(x.size()));
    return out.bytes();
  });
}

TEST_P(ElementwiseTest, AValueDoesNotDependOnItsPlace) {
  for (const Unary op : kUnary) {
    std::vector<float> x(67, 0.7183f), out(67);
    for (const int64_t n : {1, 5, 8, 15, 67}) {
      k().unary(context(), op, DType::f32, x.data(), out.data(), n);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(std::bit_cast<uint32_t>(out[static_cast<size_t>(i)]), std::bit_cast<uint32_t>(out[0]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, ElementwiseTest, testing::ValuesIn(levels()), level_name);

}  // namespace
}  // namespace muster::cpu
