// Tweet clean-up: expected values are what the Python of the two sources gives.
#include "data/normalize.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace muster::data {
namespace {

TEST(Normalize, Timelms) {
  const auto clean = [](std::string_view text) { return normalize_tweet(text, Normalization::timelms); };
  EXPECT_EQ(clean("@jo see  https://t.co/x\tnow\n@ me @"), "@user see http now @ me @");
  EXPECT_EQ(clean("  a\u2028b\u00a0c\x1f"
                  "d\u3000 "),
            "a b c d");
  EXPECT_EQ(clean("hi@jo (@jo) http httpx Https HTTP"), "hi@jo (@jo) http http Https HTTP");
  EXPECT_EQ(clean(""), "");
  EXPECT_EQ(clean(" \n"), "");
  EXPECT_EQ(clean("\xff @\xff"), "\xff @user");  // invalid bytes pass through
}

TEST(Normalize, ModelCard) {
  const auto clean = [](std::string_view text) { return normalize_tweet(text, Normalization::model_card); };
  EXPECT_EQ(clean("@jo  see https://t.co/x\t@b "), "@user  see http ");
  EXPECT_EQ(clean(" "), " ");
  EXPECT_EQ(clean(""), "");
}

TEST(Normalize, Names) {
  EXPECT_EQ(normalize_tweet(" @jo ", Normalization::none), " @jo ");
  for (const auto mode : {Normalization::none, Normalization::timelms, Normalization::model_card})
    EXPECT_EQ(parse_normalization(name_of(mode)), mode);
  EXPECT_THROW(parse_normalization("tweets"), Error);
}

}  // namespace
}  // namespace muster::data
