// The 16-bit floats: every bit pattern there and back, rounding to nearest even, NaN stays NaN.
#include "core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace muster {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(BF16, EveryPatternComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const BF16 value{static_cast<uint16_t>(bits)};
    const float wide = to_f32(value);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(to_f32(to_bf16(wide)))) << bits;
    } else {
      ASSERT_EQ(to_bf16(wide).bits, bits);
    }
  }
}

TEST(F16, EveryPatternComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const F16 value{static_cast<uint16_t>(bits)};
    const float wide = to_f32(value);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(to_f32(to_f16(wide)))) << bits;
    } else {
      ASSERT_EQ(to_f16(wide).bits, bits);
    }
  }
}

/// Between each two neighbours: below the middle goes down, above goes up, the middle goes to the even one.
template <typename Half, Half (*narrow)(float)>
void rounds_to_nearest_even(uint16_t largest) {
  for (uint16_t bits = 0; bits < largest; ++bits) {
    const auto low = static_cast<double>(to_f32(Half{bits})), high = static_cast<double>(to_f32(Half{static_cast<uint16_t>(bits + 1)}));
    const auto middle = static_cast<float>((low + high) / 2);
    const auto even = static_cast<uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(narrow(middle).bits, even);
    ASSERT_EQ(narrow(std::nextafter(middle, -kInfinity)).bits, bits);
    ASSERT_EQ(narrow(std::nextafter(middle, kInfinity)).bits, bits + 1);
    ASSERT_EQ(narrow(-middle).bits, even | 0x8000);
  }
}

TEST(BF16, RoundsToNearestEven) { rounds_to_nearest_even<BF16, to_bf16>(0x7f7f); }
TEST(F16, RoundsToNearestEven) { rounds_to_nearest_even<F16, to_f16>(0x7bff); }

TEST(BF16, OverflowsToInfinity) {
  EXPECT_EQ(to_f32(to_bf16(std::numeric_limits<float>::max())), kInfinity);
  EXPECT_EQ(to_f32(to_bf16(-kInfinity)), -kInfinity);
}

TEST(F16, OverflowsToInfinityHalfAStepPastTheLargest) {
  EXPECT_EQ(to_f32(to_f16(65519.996f)), 65504);
  EXPECT_EQ(to_f32(to_f16(65520)), kInfinity);
  EXPECT_EQ(to_f32(to_f16(-1e9f)), -kInfinity);
}

TEST(F16, SmallestAndZeros) {
  EXPECT_EQ(to_f16(0x1p-24f).bits, 1);
  EXPECT_EQ(to_f16(0x1p-25f).bits, 0) << "half of the smallest ties to zero";
  EXPECT_EQ(to_f16(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_f16(0x1p-14f).bits, 0x0400) << "the smallest normal";
}

/// A NaN whose set bits are all in the half that is cut off must not become an infinity.
TEST(BF16, KeepsNaNWithLowBitsOnly) {
  EXPECT_TRUE(std::isnan(to_f32(to_bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(to_f32(to_bf16(std::bit_cast<float>(0xff800001u)))));
  EXPECT_TRUE(std::isnan(to_f32(to_f16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(DType, SizesNamesAndKinds) {
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::i64), 8u);
  EXPECT_EQ(size_of(DType::boolean), 1u);
  EXPECT_EQ(name_of(DType::boolean), "bool");
  EXPECT_EQ(name_of(DType::f16), "f16");
  EXPECT_TRUE(is_float(DType::f64) && !is_float(DType::i32) && !is_float(DType::boolean));
}

}  // namespace
}  // namespace muster
