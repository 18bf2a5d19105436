// AdamW against f64 and against torch.optim.AdamW, the row-sparse form, the norm and the check for broken values.
#include "kernel_fixture.h"

namespace muster::cpu {
namespace {

AdamW step_of(int64_t t) {
  AdamW p{.lr = 0.01, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-6, .weight_decay = 0.1};
  p.bias_correction1 = 1.0 - std::pow(p.beta1, static_cast<double>(t));
  p.bias_correction2 = 1.0 - std::pow(p.beta2, static_cast<double>(t));
  return p;
}

/// The same step in f64.
void reference(const AdamW& s, std::vector<double>& p, const std::vector<double>& grad, std::vector<double>& m, std::vector<double>& v) {
  for (size_t i = 0; i < p.size(); ++i) {
    const double g = grad[i] * static_cast<double>(s.grad_scale);
    p[i] -= s.lr * s.weight_decay * p[i];
    m[i] = s.beta1 * m[i] + (1.0 - s.beta1) * g;
    v[i] = s.beta2 * v[i] + (1.0 - s.beta2) * g * g;
    p[i] -= s.lr / s.bias_correction1 * m[i] / (std::sqrt(v[i]) / std::sqrt(s.bias_correction2) + s.eps);
  }
}

class OptimizerTest : public KernelTest {};

TEST_P(OptimizerTest, FiveStepsMatchTorch) {
  // p = nn.Parameter(first); AdamW([p], lr=0.01, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.1); gradients as below; torch 2.x, f32.
  std::vector<float> p{0.5f, -1.25f, 0.0f, 3.0f, 1e-3f, -2.0f, 0.75f, 10.0f}, g(8), m(8), v(8);
  const float torch[] = {0.5251170992851257f,    -1.2645670175552368f, -0.015107610262930393f, 2.975926399230957f,
                         -0.027674730867147446f, -2.01265549659729f,   0.7308605909347534f,    9.934518814086914f};
  for (int t = 0; t < 5; ++t) {
    for (int i = 0; i < 8; ++i) g[static_cast<size_t>(i)] = static_cast<float>(((i * 37 + t * 11) % 19 - 9) / 7.0 * (i == 4 ? 1e-3 : 1.0));
    k().adamw(context(), step_of(t + 1), {p.data(), g.data(), m.data(), v.data(), nullptr}, 8);
  }
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(p[i], torch[i], 1e-6f * std::max(1.0f, std::fabs(torch[i])));
}

TEST_P(OptimizerTest, MatchesTheFormula) {
  for (const size_t n : {0, 1, 13, 40003}) {
    Array p = Array::random(DType::f32, n, 61), g = Array::random(DType::f32, n, 62), m = Array::random(DType::f32, n, 63, 0.1);
    Array v = Array::random(DType::f32, n, 64, 0.1), narrow(DType::bf16, n);
    for (size_t i = 0; i < n; ++i) v.set(i, std::fabs(v[i]));
    std::vector<double> want = p.values(), want_m = m.values(), want_v = v.values();
    AdamW s = step_of(3);
    s.grad_scale = 0.3f;
    s.zero_grad = true;
    reference(s, want, g.values(), want_m, want_v);
    k().adamw(context(), s, {p.f32(), g.f32(), m.f32(), v.f32(), static_cast<BF16*>(narrow.data())}, static_cast<int64_t>(n));
    expect_close(p, want, 1e-6, "param");
    expect_close(m, want_m, 1e-6, "m");
    expect_close(v, want_v, 1e-6, "v");
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(g[i], 0.0);
      ASSERT_EQ(narrow[i], stored(DType::bf16, p[i]));
    }
  }
}

TEST_P(OptimizerTest, RowsAreUpdatedAsInTheDenseStepAndOthersUntouched) {
  for (const int64_t width : {1, 7, 384}) {
    const size_t n = static_cast<size_t>(20 * width);
    const std::vector<int32_t> rows{3, 0, 19, 7};
    Array p = Array::random(DType::f32, n, 65), g(DType::f32, n), m(DType::f32, n), v(DType::f32, n);
    for (const int32_t r : rows)
      for (int64_t c = 0; c < width; ++c) g.set(static_cast<size_t>(r * width + c), static_cast<double>(r + c % 5) - 3.0);
    Array dense = p, dense_m = m, dense_v = v, decayed = p;
    const AdamW s = step_of(1);
    k().adamw(context(), s, {dense.f32(), g.f32(), dense_m.f32(), dense_v.f32(), nullptr}, static_cast<int64_t>(n));
    k().scale(context(), DType::f32, p.data(), static_cast<float>(1.0 - s.lr * s.weight_decay), decayed.data(), static_cast<int64_t>(n));
    Array before = p;
    k().adamw_rows(context(), s, {p.f32(), g.f32(), m.f32(), v.f32(), nullptr}, rows.data(), 4, width);
    for (size_t i = 0; i < n; ++i) {
      const bool listed = std::find(rows.begin(), rows.end(), static_cast<int32_t>(i / static_cast<size_t>(width))) != rows.end();
      ASSERT_EQ(p[i], listed ? dense[i] : before[i]);
      if (!listed) {
        ASSERT_EQ(dense[i], decayed[i]) << "without gradient and moments the step is the decay, exactly";
      }
      ASSERT_EQ(m[i], dense_m[i]);
      ASSERT_EQ(v[i], dense_v[i]);
    }
  }
}

TEST_P(OptimizerTest, SumOfSquaresDoesNotOverflow) {
  for (const size_t n : {0, 1, 13, 50001}) {
    Array x = Array::random(DType::f32, n, 66, 1e25);
    double want = 0;
    for (size_t i = 0; i < n; ++i) want += x[i] * x[i];
    EXPECT_NEAR(k().sum_of_squares(context(), x.f32(), static_cast<int64_t>(n)), want, 1e-12 * want);
  }
  Array x = Array::random(DType::f32, 100000, 67);
  expect_same_bits([&](const KernelContext& c) {
    const double total = k().sum_of_squares(c, x.f32(), 100000);
    std::vector<std::byte> bits(8);
    std::memcpy(bits.data(), &total, 8);
    return bits;
  });
}

TEST_P(OptimizerTest, FindsEveryBrokenValue) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const size_t n : {1, 13, 40001}) {
      Array x = Array::random(dtype, n, 68, 1e30);
      const auto found = [&] { return k().has_nonfinite(context(), dtype, x.data(), static_cast<int64_t>(n)); };
      EXPECT_FALSE(found());
      for (const double bad : {static_cast<double>(INFINITY), -static_cast<double>(INFINITY), static_cast<double>(NAN)})
        for (const size_t at : {size_t{0}, n / 2, n - 1}) {
          const double kept = x[at];
          x.set(at, bad);
          EXPECT_TRUE(found()) << bad << " at " << at << " of " << n;
          x.set(at, kept);
        }
      EXPECT_FALSE(found());
    }
  EXPECT_FALSE(k().has_nonfinite(context(), DType::f32, nullptr, 0));
}

INSTANTIATE_TEST_SUITE_P(Levels, OptimizerTest, testing::ValuesIn(levels()), level_name);

}  // namespace
}  // namespace muster::cpu
