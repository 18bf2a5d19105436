// exp, log, erf, tanh, sqrt against libm in f64: units in the last place over all of f32. MUSTER_TEST_EXHAUSTIVE=1 takes every value.
#include <cstdlib>

#include "kernel_fixture.h"

namespace muster::cpu {
namespace {

class VecMathTest : public KernelTest {
 protected:
  void expect_ulp(Unary op, double (*reference)(double), double limit) {
    const uint64_t step = std::getenv("MUSTER_TEST_EXHAUSTIVE") != nullptr ? 1 : 997;
    constexpr size_t kBatch = 1 << 16;
    std::vector<float> in(kBatch), out(kBatch);
    double worst = 0.0;
    float worst_at = 0.0f;
    for (uint64_t next = 0; next < (uint64_t{1} << 32);) {
      size_t n = 0;
      for (; n < kBatch && next < (uint64_t{1} << 32); ++n, next += step) in[n] = std::bit_cast<float>(static_cast<uint32_t>(next));
      k().unary(context(), op, DType::f32, in.data(), out.data(), static_cast<int64_t>(n));
      for (size_t i = 0; i < n; ++i) {
        const double want = reference(static_cast<double>(in[i]));
        const auto nearest = static_cast<float>(want);
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(out[i])) << std::hexfloat << in[i];
        } else if (std::isinf(nearest) || nearest == 0.0f) {
          ASSERT_EQ(out[i], nearest) << std::hexfloat << in[i];
        } else {
          int exponent = 0;
          std::frexp(nearest, &exponent);
          const double error = std::fabs(static_cast<double>(out[i]) - want) / std::ldexp(1.0, std::max(exponent - 24, -149));
          if (!(error <= worst)) worst = error, worst_at = in[i];
        }
      }
    }
    EXPECT_LE(worst, limit) << "at " << std::hexfloat << worst_at;
  }
};

TEST_P(VecMathTest, ExpIsWithinTwoUlp) { expect_ulp(Unary::exp, std::exp, 2.0); }
TEST_P(VecMathTest, LogIsWithinTwoUlp) { expect_ulp(Unary::log, std::log, 2.0); }
TEST_P(VecMathTest, ErfIsWithinTwoUlp) { expect_ulp(Unary::erf, std::erf, 2.0); }
TEST_P(VecMathTest, TanhIsWithinTwoUlp) { expect_ulp(Unary::tanh, std::tanh, 2.0); }
TEST_P(VecMathTest, SqrtIsRoundedCorrectly) { expect_ulp(Unary::sqrt, std::sqrt, 0.5); }

TEST_P(VecMathTest, ZerosKeepTheirSign) {
  const float in[] = {-0.0f, 0.0f};
  for (const Unary op : {Unary::erf, Unary::tanh, Unary::sqrt}) {
    float out[2] = {1, 1};
    k().unary(context(), op, DType::f32, in, out, 2);
    EXPECT_TRUE(std::signbit(out[0]) && out[0] == 0.0f);
    EXPECT_TRUE(!std::signbit(out[1]) && out[1] == 0.0f);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, VecMathTest, testing::ValuesIn(levels()), level_name);

}  // namespace
}  // namespace muster::cpu
