// Cross entropy and softmax against f64, the gradient against finite differences.
#include "kernel_fixture.h"

namespace muster::cpu {
namespace {

/// Loss of one row as PyTorch's cross_entropy(label_smoothing) defines it.
double row_loss(const double* x, int64_t classes, int32_t label, double smoothing) {
  if (label < 0) return 0.0;
  double largest = -INFINITY, total = 0, spread = 0;
  for (int64_t c = 0; c < classes; ++c) largest = std::max(largest, x[c]);
  for (int64_t c = 0; c < classes; ++c) total += std::exp(x[c] - largest);
  const double lse = largest + std::log(total);
  for (int64_t c = 0; c < classes; ++c) spread += (lse - x[c]) / static_cast<double>(classes);
  return (1.0 - smoothing) * (lse - x[label]) + (smoothing == 0.0 ? 0.0 : smoothing * spread);
}

class LossTest : public KernelTest {};

TEST_P(LossTest, MatchesTheFormulaAndItsDifferences) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const float smoothing : {0.0f, 0.1f})
      for (const auto& [rows, classes] : {std::pair<int64_t, int64_t>{0, 3}, {5, 1}, {70, 2}, {9, 20}, {3, 333}}) {
        const auto n = static_cast<size_t>(rows * classes);
        Array logits = Array::random(dtype, n, 41, 3.0), ct = Array::random(DType::f32, static_cast<size_t>(rows), 42), d(dtype, n);
        std::vector<int32_t> labels(static_cast<size_t>(rows));
        for (size_t r = 0; r < labels.size(); ++r)
          labels[r] = r % 4 == 3 ? -100 : static_cast<int32_t>((r * 7) % static_cast<size_t>(classes));
        std::vector<float> losses(labels.size()), lse(labels.size());
        k().cross_entropy(context(), {.dtype = dtype,
                                      .rows = rows,
                                      .classes = classes,
                                      .logits = logits.data(),
                                      .labels = labels.data(),
                                      .smoothing = smoothing,
                                      .losses = losses.data(),
                                      .lse = lse.data()});
        CrossEntropyGrad g{.dtype = dtype,
                           .rows = rows,
                           .classes = classes,
                           .logits = logits.data(),
                           .labels = labels.data(),
                           .lse = lse.data(),
                           .ct = ct.f32(),
                           .smoothing = smoothing,
                           .d_logits = d.data()};
        k().cross_entropy_grad(context(), g);
        const std::string what = text(dtype, {rows, classes}) + " smoothing " + std::to_string(smoothing);
        const auto reference = [&](const std::vector<double>& x, size_t r) {
          return row_loss(x.data() + static_cast<int64_t>(r) * classes, classes, labels[r], static_cast<double>(smoothing));
        };
        const std::vector<double> x = logits.values();
        for (size_t r = 0; r < labels.size(); ++r)
          ASSERT_NEAR(static_cast<double>(losses[r]), reference(x, r), 3e-6 * (1 + reference(x, r))) << what;
        const auto loss = [&](const std::vector<double>& v) {
          double total = 0;
          for (size_t r = 0; r < labels.size(); ++r) total += ct[r] * reference(v, r);
          return total;
        };
        if (classes > 1) expect_close(d, differences(x, loss), 2 * tolerance_of(dtype), what);
        for (size_t r = 3; r < labels.size(); r += 4)
          for (size_t c = 0; c < static_cast<size_t>(classes); ++c) ASSERT_EQ(d[r * static_cast<size_t>(classes) + c], 0.0);
        g.d_logits = logits.data();
        k().cross_entropy_grad(context(), g);
        EXPECT_EQ(logits.bytes(), d.bytes()) << "in place, " << what;
      }
}

TEST_P(LossTest, AVocabularyOfClasses) {
  const int64_t classes = 50265, rows = 3;
  Array logits = Array::random(DType::f32, static_cast<size_t>(rows * classes), 43, 4.0);
  const std::vector<int32_t> labels{7, 50264, 0};
  std::vector<float> losses(3);
  k().cross_entropy(
      context(),
      {.rows = rows, .classes = classes, .logits = logits.data(), .labels = labels.data(), .smoothing = 0.1f, .losses = losses.data()});
  const std::vector<double> x = logits.values();
  for (size_t r = 0; r < 3; ++r) {
    const double want = row_loss(x.data() + static_cast<int64_t>(r) * classes, classes, labels[r], static_cast<double>(0.1f));
    EXPECT_NEAR(static_cast<double>(losses[r]), want, 1e-5 * want);
  }
}

TEST_P(LossTest, ExtremeLogits) {
  const float inf = INFINITY;
  const std::vector<float> logits{3e38f, -3e38f, 0, 0, -inf, 1, 2, 3, NAN, 0, 0, 0, 1e-40f, 0, 0, 0};
  const std::vector<int32_t> labels{0, 3, 0, 9};
  std::vector<float> losses(4), lse(4);
  k().cross_entropy(
      context(), {.rows = 4, .classes = 4, .logits = logits.data(), .labels = labels.data(), .losses = losses.data(), .lse = lse.data()});
  EXPECT_EQ(losses[0], 0.0f);
  EXPECT_NEAR(losses[1], std::log(1.0 + std::exp(-1.0) + std::exp(-2.0)), 1e-6);
  EXPECT_TRUE(std::isnan(losses[2]));
  EXPECT_TRUE(std::isnan(losses[3])) << "a label beyond the classes";
  EXPECT_NEAR(lse[3], std::log(4.0), 1e-6);
}

TEST_P(LossTest, SoftmaxMatchesTheFormula) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{0, 3}, {2, 0}, {5, 1}, {70, 2}, {9, 384}, {3, 5001}}) {
      const auto n = static_cast<size_t>(rows * width);
      Array x = Array::random(dtype, n, 44, 5.0), out(dtype, n);
      k().softmax(context(), dtype, x.data(), out.data(), rows, width);
      std::vector<double> want = x.values();
      for (size_t r = 0; r < n; r += static_cast<size_t>(width)) {
        double total = 0;
        for (size_t c = r; c < r + static_cast<size_t>(width); ++c) total += want[c] = std::exp(want[c]);
        for (size_t c = r; c < r + static_cast<size_t>(width); ++c) want[c] /= total;
      }
      expect_close(out, want, tolerance_of(dtype), text(dtype, {rows, width}));
      k().softmax(context(), dtype, x.data(), x.data(), rows, width);
      EXPECT_EQ(x.bytes(), out.bytes()) << "in place";
    }
}

TEST_P(LossTest, ARowDoesNotDependOnItsPlaceNorOnThreads) {
  const int64_t rows = 400, classes = 41;
  Array logits = Array::random(DType::f32, static_cast<size_t>(rows * classes), 45);
  for (int64_t c = 0; c < classes; ++c) logits.set(static_cast<size_t>(399 * classes + c), logits[static_cast<size_t>(c)]);
  const std::vector<int32_t> labels(400, 5);
  expect_same_bits([&](const KernelContext& c) {
    Array losses(DType::f32, 400);
    k().cross_entropy(
        c, {.rows = rows, .classes = classes, .logits = logits.data(), .labels = labels.data(), .smoothing = 0.2f, .losses = losses.f32()});
    EXPECT_EQ(losses[0], losses[399]);
    return losses.bytes();
  });
}

INSTANTIATE_TEST_SUITE_P(Levels, LossTest, testing::ValuesIn(levels()), level_name);

}  // namespace
}  // namespace muster::cpu
