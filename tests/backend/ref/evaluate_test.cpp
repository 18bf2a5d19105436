// Element-wise ops, shapes, reductions, products and rows against numbers worked out by hand or by the C library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/ref/support.h"
#include "core/dropout_mask.h"

namespace muster::ref::testing {
namespace {

using graph::Attrs;
using graph::Op;
using graph::Value;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();

TEST(Elementwise, UnaryOps) {
  Program p;
  const Value x = p.leaf({2}, {0.25, 4});
  EXPECT_THAT(p.run(p.b.neg(x)), ElementsAre(-0.25, -4));
  EXPECT_THAT(p.run(p.b.exp(x)), Pointwise(DoubleNear(1e-14), {std::exp(0.25), std::exp(4)}));
  EXPECT_THAT(p.run(p.b.log(x)), Pointwise(DoubleNear(1e-14), {std::log(0.25), std::log(4)}));
  EXPECT_THAT(p.run(p.b.sqrt(x)), ElementsAre(0.5, 2));
  EXPECT_THAT(p.run(p.b.rsqrt(x)), ElementsAre(2, 0.5));
  EXPECT_THAT(p.run(p.b.tanh(x)), Pointwise(DoubleNear(1e-14), {std::tanh(0.25), std::tanh(4)}));
  EXPECT_THAT(p.run(p.b.erf(x)), Pointwise(DoubleNear(1e-14), {std::erf(0.25), std::erf(4)}));
}

/// torch.nn.functional.gelu in f64.
TEST(Elementwise, GeluIsPyTorchs) {
  Program p;
  const Value x = p.leaf({4}, {-3, -0.5, 0, 1.25});
  const std::vector<double> exact{-0.00404969409489031, -0.15426876936299344, 0.0, 1.117937782916431};
  const std::vector<double> tanh{-0.0036373920817729943, -0.15428599017485606, 0.0, 1.1177142029697147};
  EXPECT_THAT(p.run(p.b.gelu(x)), Pointwise(DoubleNear(1e-12), exact));
  EXPECT_THAT(p.run(p.b.gelu(x, true)), Pointwise(DoubleNear(1e-12), tanh));
}

TEST(Elementwise, BinaryOpsAndSelect) {
  Program p;
  const Value a = p.leaf({3}, {1, -2, 5}), b = p.leaf({3}, {4, -2, 2});
  EXPECT_THAT(p.run(p.b.add(a, b)), ElementsAre(5, -4, 7));
  EXPECT_THAT(p.run(p.b.sub(a, b)), ElementsAre(-3, 0, 3));
  EXPECT_THAT(p.run(p.b.mul(a, b)), ElementsAre(4, 4, 10));
  EXPECT_THAT(p.run(p.b.div(a, b)), ElementsAre(0.25, 1, 2.5));
  EXPECT_THAT(p.run(p.b.maximum(a, b)), ElementsAre(4, -2, 5));
  EXPECT_THAT(p.run(p.b.greater(a, b)), ElementsAre(0, 0, 1));
  EXPECT_THAT(p.run(p.b.select(p.b.greater(a, b), a, p.b.neg(b))), ElementsAre(-4, 2, 5));
}

TEST(Elementwise, MaximumKeepsNaN) {
  Program p;
  const Value a = p.leaf({3}, {kNaN, 1, 2}), b = p.leaf({3}, {1, kNaN, 3});
  const std::vector<double> y = p.run(p.b.maximum(a, b));
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  EXPECT_EQ(y[2], 3);
}

TEST(Elementwise, ConvertRoundsToSixteenBitsAndDropsFractions) {
  Program p;
  const Value x = p.leaf({4}, {1 + 1.0 / 256, 1 + 3.0 / 256, -2.75, 0});
  EXPECT_THAT(p.run(p.b.convert(x, DType::bf16)), ElementsAre(1, 1 + 4.0 / 256, -2.75, 0));  // ties to even
  EXPECT_THAT(p.run(p.b.convert(x, DType::f16)), ElementsAre(1 + 1.0 / 256, 1 + 3.0 / 256, -2.75, 0));
  EXPECT_THAT(p.run(p.b.convert(x, DType::i32)), ElementsAre(1, 1, -2, 0));
  EXPECT_THAT(p.run(p.b.convert(x, DType::boolean)), ElementsAre(1, 1, 1, 0));
}

TEST(Elementwise, ResultsOfA16BitTypeAreRounded) {
  Program p;
  const Value x = p.leaf({1}, {1 + 1.0 / 128}, DType::bf16);
  EXPECT_THAT(p.run(p.b.mul(x, x)), ElementsAre(1 + 2.0 / 128));  // exact: 1 + 2/128 + 1/16384
  const Value wide = p.b.convert(x, DType::f32);
  EXPECT_THAT(p.run(p.b.mul(wide, wide)), ElementsAre(1 + 2.0 / 128 + 1.0 / 16384));
}

TEST(Elementwise, DropoutDrawsTheSharedMask) {
  Program p;
  p.symbols[1] = 40;
  const Value x = p.leaf({graph::kTokens, 25}, std::vector<double>(1000, 1.0));
  const std::vector<double> y = p.run(p.b.dropout(x, 0.25, 3), 11);
  int dropped = 0;
  for (uint64_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(y[i], dropout_factor(dropout_rate(0.25), 11, 3, i)) << i;
    dropped += y[i] == 0;
  }
  EXPECT_NEAR(dropped, 250, 60);
  EXPECT_NE(p.run(p.b.dropout(x, 0.25, 3), 12), y);
  EXPECT_NE(p.run(p.b.dropout(x, 0.25, 4), 11), y);
}

TEST(Shapes, MoveElements) {
  Program p;
  p.symbols[1] = 2;
  const Value x = p.leaf({graph::kTokens, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(p.run(p.b.transpose(x, {1, 0})), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(p.run(p.b.reshape(x, {graph::kTokens, 3, 1})), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(p.run(p.b.broadcast(x, {graph::kTokens, 2, 3}, {0, 2})), ElementsAre(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6));
  EXPECT_THAT(p.run(p.b.slice(x, 1, 1, 3)), ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(p.run(p.b.slice(x, 1, 2, 2)), ElementsAre());
  EXPECT_THAT(p.run(p.b.concat({p.b.slice(x, 1, 2, 3), x}, 1)), ElementsAre(3, 1, 2, 3, 6, 4, 5, 6));
  EXPECT_THAT(p.run(p.b.constant(2.5, {graph::kTokens, 2})), ElementsAre(2.5, 2.5, 2.5, 2.5));
}

TEST(Shapes, TransposeOfThreeAxes) {
  Program p;
  const Value x = p.leaf({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(p.run(p.b.transpose(x, {2, 0, 1})), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Reductions, SumAndMaxOverAnyAxes) {
  Program p;
  const Value x = p.leaf({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(p.run(p.b.reduce_sum(x, {1})), ElementsAre(4, 6, 12, 14));
  EXPECT_THAT(p.run(p.b.reduce_sum(x, {2, 0})), ElementsAre(14, 22));
  EXPECT_THAT(p.run(p.b.reduce_sum(x, {0, 1, 2})), ElementsAre(36));
  EXPECT_THAT(p.run(p.b.reduce_max(x, {0, 2})), ElementsAre(6, 8));
  const Value y = p.leaf({2, 2}, {kNaN, 1, 2, 3});
  const std::vector<double> largest = p.run(p.b.reduce_max(y, {1}));
  EXPECT_TRUE(std::isnan(largest[0]));
  EXPECT_EQ(largest[1], 3);
}

TEST(Reductions, OfNothing) {
  Program p;
  const Value x = p.leaf({graph::kTokens, 2}, {});
  EXPECT_THAT(p.run(p.b.reduce_sum(x, {0})), ElementsAre(0, 0));
  EXPECT_THAT(p.run(p.b.reduce_max(x, {0})), ElementsAre(-kInfinity, -kInfinity));
}

TEST(Dot, AllFourLayoutsAgree) {
  Program p;
  const Value a = p.leaf({2, 3}, {1, 2, 3, 4, 5, 6}), at = p.b.transpose(a, {1, 0});
  const Value b = p.leaf({3, 2}, {7, 8, 9, 10, 11, 12}), bt = p.b.transpose(b, {1, 0});
  const auto product = ElementsAre(58, 64, 139, 154);
  EXPECT_THAT(p.run(p.b.dot(a, b)), product);
  EXPECT_THAT(p.run(p.b.dot(at, b, true, false)), product);
  EXPECT_THAT(p.run(p.b.dot(a, bt, false, true)), product);
  EXPECT_THAT(p.run(p.b.dot(at, bt, true, true)), product);
}

TEST(Dot, MarkedBf16RoundsItsOperands) {
  Program p;
  Attrs attrs;
  attrs.bf16 = true;
  const Value a = p.leaf({1, 1}, {1 + 1.0 / 256}), b = p.leaf({1, 1}, {1 + 3.0 / 256});
  EXPECT_THAT(p.run(p.b.emit(Op::dot, {a, b}, attrs)), ElementsAre(1 + 4.0 / 256));
}

TEST(Rows, GatherAndScatterAdd) {
  Program p;
  p.symbols[1] = 3;
  const Value table = p.leaf({4, 2}, {0, 1, 10, 11, 20, 21, 30, 31});
  const Value rows = p.leaf({graph::kTokens}, {3, 0, 3}, DType::i32);
  const Value taken = p.b.gather(table, rows);
  EXPECT_THAT(p.run(taken), ElementsAre(30, 31, 0, 1, 30, 31));
  EXPECT_THAT(p.run(p.b.scatter_add(taken, rows, {4, 2})), ElementsAre(0, 1, 0, 0, 0, 0, 60, 62));
}

TEST(Rows, NumbersOutsideTheTableAreErrors) {
  Program taking, adding;
  const Value table = taking.leaf({4, 1}, {0, 10, 20, 30});
  const Value taken = taking.b.gather(table, taking.leaf({3}, {3, 4, 3}, DType::i32));
  EXPECT_EQ(message_of([&] { taking.run(taken); }), "[gather] row number 4 (element 1) is outside a table of 4 rows");
  const Value updates = adding.leaf({3, 1}, {1, 2, 3});
  const Value sums = adding.b.scatter_add(updates, adding.leaf({3}, {3, 0, -1}, DType::i32), {4, 1});
  EXPECT_EQ(message_of([&] { adding.run(sums); }), "[scatter_add] row number -1 (element 2) is outside a table of 4 rows");
}

TEST(Evaluate, NamesALeafThatIsMissingOrOfAnotherSize) {
  Program p;
  const Value x = p.b.neg(p.leaf({3}, {1, 2}));
  EXPECT_EQ(message_of([&] { p.run(x); }), "[evaluate] 'x0' has 2 values, its shape is [3]");
  p.leaves.clear();
  EXPECT_EQ(message_of([&] { p.run(x); }), "[evaluate] no values for 'x0'");
}

}  // namespace
}  // namespace muster::ref::testing
