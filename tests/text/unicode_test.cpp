// UTF-8 reading, and token batches.
#include "text/unicode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "text/pre_tokenizer.h"
#include "text/token_batch.h"

namespace muster::text {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Unicode, EveryCodePointSurvives) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string bytes;
    append_utf8(bytes, code);
    const Decoded step = decode_utf8(bytes, 0);
    ASSERT_TRUE(step.valid && step.code == code && step.size == bytes.size()) << std::hex << static_cast<uint32_t>(code);
    ASSERT_EQ(decode_valid(bytes, 0).code, code);
    ASSERT_EQ(decode_valid(bytes, 0).size, step.size);
  }
}

// Unicode 15, section 3.9, tables 3-8 to 3-11.
TEST(Unicode, MaximalSubparts) {
  const std::string bad = "\xEF\xBF\xBD";
  const auto times = [&](int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += bad;
    return out;
  };
  EXPECT_EQ(to_valid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), times(8) + "A");
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), times(8) + "A");
  EXPECT_EQ(to_valid_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), times(5) + "A" + times(2) + "B");
  EXPECT_EQ(to_valid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), times(4) + "A");
  std::vector<uint32_t> origin;
  EXPECT_EQ(to_valid_utf8("a\xE1\x80z", &origin), "a" + bad + "z");
  EXPECT_THAT(origin, ElementsAre(0U, 1U, 1U, 1U, 3U, 4U));
  EXPECT_TRUE(is_valid_utf8(std::string("\0a\xF4\x8F\xBF\xBF", 6)));
  EXPECT_FALSE(is_valid_utf8("\xED\xA0\x80"));
}

TEST(Unicode, Gpt2Words) {
  const auto words = [](const std::string& text) {
    std::vector<std::string> out;
    for (size_t i = 0; i < text.size();) {
      const size_t size = gpt2_match(text, i, text.size());
      out.push_back(text.substr(i, size));
      i += size;
    }
    return out;
  };
  EXPECT_THAT(words("I'll don't  see   'sabc 12a"), ElementsAre("I", "'ll", " don", "'t", " ", " see", "  ", " '", "sabc", " 12", "a"));
  EXPECT_THAT(words("a \n b\t\tc  "), ElementsAre("a", " \n", " b", "\t", "\t", "c", "  "));
  EXPECT_THAT(words("'LL !!x"), ElementsAre("'", "LL", " !!", "x"));
}

TEST(TokenBatch, PacksBackToBack) {
  TokenBatch batch;
  EXPECT_EQ(batch.sequences(), 0);
  EXPECT_EQ(batch.tokens(), 0);
  const std::vector<int32_t> first{5, 6, 7};
  const std::vector<int32_t> second{8};
  const std::vector<int32_t> types{1};
  batch.append(first);
  batch.append({});
  batch.append(second, types);
  EXPECT_THAT(batch.ids, ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(batch.type_ids, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(batch.cu_seqlens, ElementsAre(0, 3, 3, 4));
  EXPECT_EQ(batch.max_seqlen, 3);
  EXPECT_EQ(batch.sequences(), 3);
  EXPECT_EQ(batch.tokens(), 4);
  EXPECT_THROW(batch.append(first, types), Error);
  EXPECT_EQ(batch.sequences(), 3);
  batch.clear();
  EXPECT_THAT(batch.ids, IsEmpty());
  EXPECT_THAT(batch.cu_seqlens, ElementsAre(0));
  EXPECT_EQ(batch.max_seqlen, 0);
}

}  // namespace
}  // namespace muster::text
