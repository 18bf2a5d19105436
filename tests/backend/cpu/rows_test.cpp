// Gather, scatter-add, reductions and transpose against plain loops in f64.
#include "kernel_fixture.h"

namespace muster::cpu {
namespace {

const std::pair<int64_t, int64_t> kShapes[] = {{0, 5}, {3, 0}, {1, 1}, {7, 3}, {33, 16}, {70, 384}, {200, 770}, {2500, 9}};

class RowsTest : public KernelTest {};

TEST_P(RowsTest, GatherAndScatterAdd) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const int64_t width : {0, 1, 7, 384, 770})
      for (const int64_t n : {0, 1, 90}) {
        const int64_t vocabulary = 23;
        Array table = Array::random(dtype, static_cast<size_t>(vocabulary * width), 51),
              rows = Array::random(dtype, static_cast<size_t>(n * width), 52);
        Array out(dtype, static_cast<size_t>(n * width)), sums = Array::random(DType::f32, static_cast<size_t>(vocabulary * width), 53);
        std::vector<int32_t> ids(static_cast<size_t>(n));
        for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * i % 23);
        std::vector<double> want = sums.values();
        k().gather_rows(context(), dtype, table.data(), ids.data(), out.data(), n, width);
        k().scatter_add_rows(context(), dtype, rows.data(), ids.data(), sums.f32(), n, width);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t c = 0; c < width; ++c) {
            const int64_t at = int64_t{ids[static_cast<size_t>(i)]} * width + c;
            ASSERT_EQ(out[static_cast<size_t>(i * width + c)], table[static_cast<size_t>(at)]);
            want[static_cast<size_t>(at)] += rows[static_cast<size_t>(i * width + c)];
          }
        expect_close(sums, want, 1e-6, text(dtype, {n, width}));
      }
}

TEST_P(RowsTest, SumsAndMaxima) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& [rows, width] : kShapes) {
      const auto n = static_cast<size_t>(rows * width);
      Array x = Array::random(dtype, n, 54), columns = Array::random(DType::f32, static_cast<size_t>(width), 55);
      std::vector<double> column_want(static_cast<size_t>(width)), sum_want(static_cast<size_t>(rows)),
          max_want(static_cast<size_t>(rows), -INFINITY);
      const std::vector<double> before = columns.values();
      double total = 0;
      for (size_t i = 0; i < n; ++i) {
        const size_t r = i / static_cast<size_t>(width), c = i % static_cast<size_t>(width);
        column_want[c] += x[i], sum_want[r] += x[i], total += x[i];
        max_want[r] = std::max(max_want[r], x[i]);
      }
      const std::string what = text(dtype, {rows, width});
      Array sums(DType::f32, static_cast<size_t>(rows)), maxima(DType::f32, static_cast<size_t>(rows));
      k().row_sum(context(), dtype, x.data(), sums.f32(), rows, width);
      k().row_max(context(), dtype, x.data(), maxima.f32(), rows, width);
      expect_close(sums, sum_want, 2e-6, "row_sum " + what);
      expect_close(maxima, max_want, 0.0, "row_max " + what);
      EXPECT_NEAR(static_cast<double>(k().sum(context(), dtype, x.data(), static_cast<int64_t>(n))), total,
                  1e-6 * static_cast<double>(n) + 1e-6)
          << what;
      std::vector<double> accumulated = before;
      for (size_t c = 0; c < before.size(); ++c) accumulated[c] += column_want[c];
      k().column_sum(context(), dtype, x.data(), columns.f32(), rows, width, true);
      expect_close(columns, accumulated, 3e-6, "column_sum, accumulated, " + what);
      k().column_sum(context(), dtype, x.data(), columns.f32(), rows, width, false);
      expect_close(columns, column_want, 3e-6, "column_sum " + what);
    }
}

TEST_P(RowsTest, MaximumKeepsNaNAndInfinity) {
  const std::vector<float> x{1, NAN, 3, INFINITY, 2, 1, -INFINITY, -INFINITY, -INFINITY};
  float out[3];
  k().row_max(context(), DType::f32, x.data(), out, 3, 3);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], INFINITY);
  EXPECT_EQ(out[2], -INFINITY);
}

TEST_P(RowsTest, TransposeMovesEveryElement) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& [rows, width] : kShapes) {
      Array x = Array::random(dtype, static_cast<size_t>(rows * width), 56), out(dtype, x.size());
      k().transpose(context(), dtype, x.data(), out.data(), rows, width);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < width; ++c) ASSERT_EQ(out[static_cast<size_t>(c * rows + r)], x[static_cast<size_t>(r * width + c)]);
    }
}

TEST_P(RowsTest, ThreadsDoNotChangeBits) {
  const int64_t rows = 700, width = 300;
  Array x = Array::random(DType::f32, static_cast<size_t>(rows * width), 57);
  std::vector<int32_t> ids(static_cast<size_t>(rows));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i % 11);
  expect_same_bits([&](const KernelContext& c) {
    Array columns(DType::f32, static_cast<size_t>(width)), table(DType::f32, static_cast<size_t>(11 * width));
    Array total(DType::f32, 1);
    total.set(0, static_cast<double>(k().sum(c, DType::f32, x.data(), rows * width)));
    k().column_sum(c, DType::f32, x.data(), columns.f32(), rows, width, false);
    k().scatter_add_rows(c, DType::f32, x.data(), ids.data(), table.f32(), rows, width);
    std::vector<std::byte> all = columns.bytes();
    for (const Array* a : {&table, &total}) all.insert(all.end(), a->bytes().begin(), a->bytes().end());
    return all;
  });
}

INSTANTIATE_TEST_SUITE_P(Levels, RowsTest, testing::ValuesIn(levels()), level_name);

}  // namespace
}  // namespace muster::cpu
