// Layer norm against f64, its gradient against finite differences.
#include "kernel_fixture.h"

namespace muster::cpu {
namespace {

struct Statistics {
  double mean, rstd;
};
Statistics statistics(const double* s, int64_t width, double eps) {
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < width; ++i) mean += s[i] / static_cast<double>(width);
  for (int64_t i = 0; i < width; ++i) variance += (s[i] - mean) * (s[i] - mean) / static_cast<double>(width);
  return {mean, 1.0 / std::sqrt(variance + eps)};
}
std::vector<double> norm(const std::vector<double>& s, const std::vector<double>& gamma, const std::vector<double>& beta, double eps) {
  const auto width = static_cast<int64_t>(gamma.size());
  std::vector<double> out(s.size());
  for (size_t r = 0; r < s.size(); r += gamma.size()) {
    const Statistics st = statistics(s.data() + r, width, eps);
    for (size_t i = 0; i < gamma.size(); ++i) out[r + i] = (s[r + i] - st.mean) * st.rstd * gamma[i] + beta[i];
  }
  return out;
}

constexpr float kEps = 1e-5f;
const std::pair<int64_t, int64_t> kShapes[] = {{0, 8}, {1, 1}, {3, 7}, {5, 16}, {70, 384}, {33, 770}, {2, 3000}};

class LayerNormTest : public KernelTest {};

TEST_P(LayerNormTest, MatchesTheFormula) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& [rows, width] : kShapes) {
      const auto n = static_cast<size_t>(rows * width);
      Array x = Array::random(dtype, n, 1, 2.0), out(dtype, n);
      Array gamma = Array::random(DType::f32, static_cast<size_t>(width), 3),
            beta = Array::random(DType::f32, static_cast<size_t>(width), 4);
      std::vector<float> mean(static_cast<size_t>(rows)), rstd(mean);
      LayerNorm p{.dtype = dtype,
                  .rows = rows,
                  .width = width,
                  .x = x.data(),
                  .gamma = gamma.f32(),
                  .beta = beta.f32(),
                  .eps = kEps,
                  .out = out.data(),
                  .mean = mean.data(),
                  .rstd = rstd.data()};
      k().layer_norm(context(), p);
      const std::string what = text(dtype, {rows, width});
      const std::vector<double> values = x.values();
      expect_close(out, norm(values, gamma.values(), beta.values(), static_cast<double>(kEps)), 2 * tolerance_of(dtype), what);
      for (int64_t r = 0; r < rows; ++r) {
        const Statistics st = statistics(values.data() + r * width, width, static_cast<double>(kEps));
        EXPECT_NEAR(static_cast<double>(mean[static_cast<size_t>(r)]), st.mean, 1e-5) << what;
        EXPECT_NEAR(static_cast<double>(rstd[static_cast<size_t>(r)]) / st.rstd, 1.0, 1e-5) << what;
      }
      p.mean = nullptr, p.rstd = nullptr, p.out = x.data();  // in place, nothing stored: the same bits
      k().layer_norm(context(), p);
      EXPECT_EQ(x.bytes(), out.bytes()) << what;
    }
}

TEST_P(LayerNormTest, LargeMeanKeepsTheVariance) {
  const int64_t width = 768;
  Array x = Array::random(DType::f32, 768, 5), ones(DType::f32, std::vector<double>(768, 1.0)), zeros(DType::f32, 768),
        out(DType::f32, 768);
  for (size_t i = 0; i < 768; ++i) x.set(i, x[i] + 4096.0);
  k().layer_norm(context(),
                 {.rows = 1, .width = width, .x = x.data(), .gamma = ones.f32(), .beta = zeros.f32(), .eps = kEps, .out = out.data()});
  expect_close(out, norm(x.values(), ones.values(), zeros.values(), static_cast<double>(kEps)), 2e-4, "mean 4096");
}

TEST_P(LayerNormTest, GradientMatchesFiniteDifferences) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {2, 33}, {40, 19}, {0, 4}}) {
      const auto n = static_cast<size_t>(rows * width);
      Array input = Array::random(dtype, n, 7), ct = Array::random(dtype, n, 8), dx(dtype, n);
      Array gamma = Array::random(DType::f32, static_cast<size_t>(width), 9), beta(DType::f32, static_cast<size_t>(width));
      Array dgamma(DType::f32, gamma.values()), dbeta(DType::f32, gamma.values());
      std::vector<float> mean, rstd;
      const std::vector<double> s = input.values();
      const double eps = 0.01;
      for (int64_t r = 0; r < rows; ++r) {
        const Statistics st = statistics(s.data() + r * width, width, eps);
        mean.push_back(static_cast<float>(st.mean)), rstd.push_back(static_cast<float>(st.rstd));
      }
      LayerNormGrad p{.dtype = dtype,
                      .rows = rows,
                      .width = width,
                      .ct = ct.data(),
                      .input = input.data(),
                      .mean = mean.data(),
                      .rstd = rstd.data(),
                      .gamma = gamma.f32(),
                      .dx = dx.data(),
                      .dgamma = dgamma.f32(),
                      .dbeta = dbeta.f32()};
      k().layer_norm_grad(context(), p);
      const auto loss = [&](const std::vector<double>& at, const std::vector<double>& g, const std::vector<double>& b) {
        const std::vector<double> y = norm(at, g, b, eps);
        double total = 0;
        for (size_t i = 0; i < n; ++i) total += y[i] * ct[i];
        return total;
      };
      const std::vector<double> g = gamma.values(), b = beta.values();
      const std::string what = text(dtype, {rows, width});
      const std::vector<double> want_gamma = differences(g, [&](const auto& v) { return loss(s, v, b); });
      const std::vector<double> want_beta = differences(b, [&](const auto& v) { return loss(s, g, v); });
      if (width > 1)  // of one element the norm is constant: its gradient is the rounding of zero
        expect_close(dx, differences(s, [&](const auto& v) { return loss(v, g, b); }), 2 * tolerance_of(dtype), "dx " + what);
      expect_close(dgamma, want_gamma, 1e-5, "dgamma " + what);
      expect_close(dbeta, want_beta, 1e-5, "dbeta " + what);
      p.accumulate = true;
      k().layer_norm_grad(context(), p);
      for (size_t i = 0; i < dgamma.size(); ++i) EXPECT_NEAR(dgamma[i], 2 * want_gamma[i], 1e-4);
      p.dx = ct.data();  // in place
      k().layer_norm_grad(context(), p);
      EXPECT_EQ(ct.bytes(), dx.bytes());
    }
}

TEST_P(LayerNormTest, ThreadsDoNotChangeBitsAndRowsDoNotDependOnOthers) {
  const int64_t rows = 301, width = 130;
  const auto n = static_cast<size_t>(rows * width);
  Array x = Array::random(DType::f32, n, 21), gamma = Array::random(DType::f32, static_cast<size_t>(width), 22),
        ct = Array::random(DType::f32, n, 23);
  std::vector<float> mean(static_cast<size_t>(rows)), rstd(mean);
  Array out(DType::f32, n);
  expect_same_bits([&](const KernelContext& c) {
    Array dx(DType::f32, n), dgamma(DType::f32, static_cast<size_t>(width)), dbeta(DType::f32, static_cast<size_t>(width));
    k().layer_norm(c, {.rows = rows,
                       .width = width,
                       .x = x.data(),
                       .gamma = gamma.f32(),
                       .beta = gamma.f32(),
                       .eps = kEps,
                       .out = out.data(),
                       .mean = mean.data(),
                       .rstd = rstd.data()});
    k().layer_norm_grad(c, {.rows = rows,
                            .width = width,
                            .ct = ct.data(),
                            .input = x.data(),
                            .mean = mean.data(),
                            .rstd = rstd.data(),
                            .gamma = gamma.f32(),
                            .dx = dx.data(),
                            .dgamma = dgamma.f32(),
                            .dbeta = dbeta.f32()});
    std::vector<std::byte> all = out.bytes();
    for (const Array* a : {&dx, &dgamma, &dbeta}) all.insert(all.end(), a->bytes().begin(), a->bytes().end());
    return all;
  });
  Array together(DType::f32, n), alone(DType::f32, static_cast<size_t>(width));
  k().layer_norm(
      context(),
      {.rows = rows, .width = width, .x = x.data(), .gamma = gamma.f32(), .beta = gamma.f32(), .eps = kEps, .out = together.data()});
  k().layer_norm(
      context(),
      {.rows = 1, .width = width, .x = x.f32() + 77 * width, .gamma = gamma.f32(), .beta = gamma.f32(), .eps = kEps, .out = alone.data()});
  EXPECT_EQ(std::memcmp(alone.data(), together.f32() + 77 * width, static_cast<size_t>(width) * 4), 0);
}

INSTANTIATE_TEST_SUITE_P(Levels, LayerNormTest, testing::ValuesIn(levels()), level_name);

}  // namespace
}  // namespace muster::cpu
