#include "core/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(Shape, CountsItsElements) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({3, 4}), 12);
  EXPECT_EQ(element_count({3, 0, 4}), 0);
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(to_string(Shape{2, 384}), "[2, 384]");
}

TEST(Shape, RefusesWhatCannotBeASize) {
  for (const Shape& shape : {Shape{2, -1}, Shape{INT64_MAX, 2}, Shape{INT64_C(1) << 40, INT64_C(1) << 40}}) {
    try {
      element_count(shape);
      ADD_FAILURE() << to_string(shape);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
      EXPECT_EQ(std::string(e.what()), "[shape] " + to_string(shape) + " has a negative or too large size");
    }
  }
}

TEST(Tensor, IsAlignedAndZeroed) {
  const Tensor t(DType::f32, {3, 5});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  EXPECT_THAT(t.as<float>(), Each(0.0f));
  EXPECT_EQ(t.bytes(), 60u);
  EXPECT_FALSE(Tensor().defined());
  EXPECT_TRUE(Tensor(DType::i32, {0}).defined());
}

TEST(Tensor, CopiesShareAndClonesDoNot) {
  const Tensor t = Tensor::from<int32_t>({1, 2, 3}, {3});
  const Tensor shared = t, own = t.clone();
  t.as<int32_t>()[0] = 9;
  EXPECT_THAT(shared.as<int32_t>(), ElementsAre(9, 2, 3));
  EXPECT_THAT(own.as<int32_t>(), ElementsAre(1, 2, 3));
}

TEST(Tensor, RefusesToBeReadAsAnotherType) {
  const Tensor t(DType::f32, {3});
  EXPECT_THROW((void)t.as<int32_t>(), Error);
  EXPECT_THROW(Tensor::from<float>({1, 2}, {3}), Error);
}

TEST(Convert, BetweenFloatTypes) {
  const Tensor from = Tensor::from<float>({1, -2.5, 1 + 1.0f / 256}, {3});
  const Tensor narrow(DType::bf16, {3}), half(DType::f16, {3}), wide(DType::f64, {3}), back(DType::f32, {3});
  convert(from.view(), narrow.view());
  convert(from.view(), half.view());
  convert(half.view(), wide.view());
  convert(narrow.view(), back.view());
  EXPECT_THAT(back.as<float>(), ElementsAre(1, -2.5, 1));
  EXPECT_THAT(wide.as<double>(), ElementsAre(1, -2.5, 1 + 1.0 / 256));
}

TEST(Convert, RefusesIntegersAndOtherSizes) {
  const Tensor f(DType::f32, {3}), i(DType::i32, {3}), two(DType::f32, {2});
  EXPECT_THROW(convert(i.view(), f.view()), Error);
  EXPECT_THROW(convert(f.view(), i.view()), Error);
  EXPECT_THROW(convert(f.view(), two.view()), Error);
  EXPECT_NO_THROW(convert(i.view(), i.view()));
}

}  // namespace
}  // namespace muster
