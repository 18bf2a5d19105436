// Random numbers: the published vectors, uniformity, and the dropout mask as a function of the element.
#include "core/philox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "core/dropout_mask.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

/// kat_vectors of the authors' Random123 library: "philox4x32 10" and "philox4x32 7".
TEST(Philox, MatchesThePublishedVectors) {
  EXPECT_THAT(philox(0, 0, 0), ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  EXPECT_THAT(philox(~0ull, ~0ull, ~0ull), ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(philox(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0x85a308d3243f6a88ull),
              ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
  EXPECT_THAT(philox<7>(0, 0, 0), ElementsAre(0x5f6fb709u, 0x0d893f64u, 0x4f121f81u, 0x4f730a48u));
}

TEST(Philox, GeneratorWalksTheCounter) {
  Philox random(5, 6);
  for (uint64_t counter = 0; counter < 3; ++counter)
    for (const uint32_t word : philox(5, 6, counter)) EXPECT_EQ(random.next(), word);
}

TEST(Philox, BelowIsUniform) {
  Philox random(1);
  std::vector<int> counts(7, 0);
  for (int i = 0; i < 70000; ++i) ++counts[random.below(7)];
  double chi2 = 0;
  for (const int n : counts) chi2 += (n - 10000.0) * (n - 10000.0) / 10000;
  EXPECT_LT(chi2, 22.5) << "6 degrees of freedom, p = 0.001";
  EXPECT_EQ(random.below(1), 0u);
}

TEST(Philox, UniformAndNormalHaveTheirMoments) {
  Philox random(2);
  const int n = 100000;
  double sum = 0, low = 1, high = 0, mean = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const double u = random.uniform(), z = random.normal();
    sum += u, low = std::fmin(low, u), high = std::fmax(high, u);
    mean += z / n, squares += z * z / n;
  }
  EXPECT_NEAR(sum / n, 0.5, 0.005);
  EXPECT_GE(low, 0);
  EXPECT_LT(high, 1);
  EXPECT_NEAR(mean, 0, 0.015);
  EXPECT_NEAR(squares, 1, 0.02);
}

TEST(DropoutMask, DropsTheRateAndKeepsTheExpectation) {
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    const DropoutRate rate = dropout_rate(p);
    const uint64_t n = 200000;
    double dropped = 0, sum = 0;
    for (uint64_t i = 0; i < n; ++i) {
      const float f = dropout_factor(rate, 3, 1, i);
      dropped += f == 0, sum += f;
    }
    EXPECT_NEAR(dropped / n, p, 0.004) << p;
    EXPECT_NEAR(sum / n, 1, 0.03) << p;
  }
}

TEST(DropoutMask, OfRateZeroIsOne) {
  const DropoutRate rate = dropout_rate(0);
  EXPECT_EQ(rate.threshold, 0u);
  EXPECT_EQ(rate.scale, 1.0f);
}

/// Eight elements a block: bits of one element are one half of one word.
TEST(DropoutMask, TakesSixteenBitsAnElement) {
  const auto block = philox<7>(4, 2, 5);
  for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(dropout_bits(4, 2, 40 + i), (block[i / 2] >> (i % 2 * 16)) & 0xffff);
}

TEST(DropoutMask, DiffersBetweenSeedsStreamsAndElements) {
  int equal_seed = 0, equal_stream = 0;
  const DropoutRate rate = dropout_rate(0.5);
  for (uint64_t i = 0; i < 10000; ++i) {
    equal_seed += dropout_factor(rate, 1, 1, i) == dropout_factor(rate, 2, 1, i);
    equal_stream += dropout_factor(rate, 1, 1, i) == dropout_factor(rate, 1, 2, i);
  }
  EXPECT_NEAR(equal_seed, 5000, 250);
  EXPECT_NEAR(equal_stream, 5000, 250);
}

TEST(DropoutMask, AttentionIndicesDoNotMeet) {
  std::map<uint64_t, int> seen;
  for (int64_t t = 0; t < 5; ++t)
    for (int64_t h = 0; h < 3; ++h)
      for (const int64_t j : {0, 1, 65535}) EXPECT_EQ(seen[attention_dropout_index(t, 3, h, j)]++, 0);
}

}  // namespace
}  // namespace muster
