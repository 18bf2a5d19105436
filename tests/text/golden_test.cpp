// Ids, offsets, token strings, type ids and masks are those of the Rust library, for 19 tokenizers over the nasty lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/folders.h"
#include "text/golden.h"

namespace muster::text {
namespace {

struct Variant {
  std::string name, base;
  nlohmann::json patch;
};

std::vector<Variant> variants() {
  std::vector<Variant> out;
  for (const auto& entry : golden::read_json(golden::kData / "variants.json")) {
    out.push_back({entry["name"].get<std::string>(), entry["base"].get<std::string>(), entry["patch"]});
  }
  return out;
}

class Golden : public testing::TestWithParam<Variant> {
 protected:
  static void report(size_t different, size_t total) { EXPECT_EQ(different, 0U) << different << " of " << total << " lines differ"; }
};

TEST_P(Golden, Lines) {
  const Tokenizer tokenizer = golden::load_base(GetParam().base, GetParam().patch);
  const auto texts = golden::read_texts(golden::kData / "lines.txt");
  const auto lines = golden::read_lines(golden::kData / (GetParam().name + ".golden"));
  ASSERT_GE(texts.size(), 2000U);
  ASSERT_EQ(texts.size(), lines.size());
  size_t different = 0;
  std::vector<int32_t> ids;
  for (size_t i = 0; i < texts.size(); ++i) {
    const Encoding encoding = tokenizer.encode(texts[i]);
    const std::string difference = golden::difference(encoding, texts[i], {}, false, lines[i]);
    if (!difference.empty() && ++different <= 10) ADD_FAILURE() << GetParam().name << " line " << i + 1 << ": " << difference;
    ids.clear();
    EXPECT_EQ(tokenizer.encode_ids(texts[i], 0, ids), encoding.ids.size());
    EXPECT_EQ(ids, encoding.ids) << "encode_ids, line " << i + 1;
  }
  report(different, texts.size());
}

TEST_P(Golden, PairsAndLengths) {
  const Tokenizer tokenizer = golden::load_base(GetParam().base, GetParam().patch);
  const auto texts = golden::read_texts(golden::kData / "lines.txt");
  const auto lines = golden::read_lines(golden::kData / (GetParam().name + ".pairs"));
  ASSERT_FALSE(lines.empty());
  size_t different = 0;
  for (const std::string& line : lines) {
    const size_t bar = line.rfind('|');
    std::istringstream numbers(line.substr(bar + 1));
    size_t first = 0;
    int64_t second = 0;
    EncodeOptions options;
    numbers >> first >> second >> options.max_length;
    ASSERT_TRUE(numbers && first < texts.size() && second < static_cast<int64_t>(texts.size())) << line;
    const std::string pair = second < 0 ? std::string() : texts[static_cast<size_t>(second)];
    const Encoding encoding = second < 0 ? tokenizer.encode(texts[first], options) : tokenizer.encode_pair(texts[first], pair, options);
    const std::string difference = golden::difference(encoding, texts[first], pair, true, line.substr(0, bar));
    if (!difference.empty() && ++different <= 10) ADD_FAILURE() << GetParam().name << ' ' << line << ": " << difference;
    if (second >= 0) continue;
    std::vector<int32_t> ids;
    tokenizer.encode_ids(texts[first], options.max_length, ids);
    EXPECT_EQ(ids, encoding.ids) << "encode_ids " << line;
  }
  report(different, lines.size());
}

INSTANTIATE_TEST_SUITE_P(Rust, Golden, testing::ValuesIn(variants()), [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace muster::text
