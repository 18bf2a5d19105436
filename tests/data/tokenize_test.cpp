// A dataset as tokens: same as row by row, for any number of threads.
#include "data/tokenize.h"

#include "written_folder.h"

namespace muster::data {
namespace {

using testing::ElementsAre;

class TokenizeTest : public WrittenFolder {
 protected:
  TokenizeTest() {
    write("model/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n");
    for (int i = 0; i < 1000; ++i) {
      std::string text;
      for (int word = 0; word < i % 13; ++word) text += "abc"[(i + word) % 3] + std::string(" ");
      data_.texts.push_back(text);
      data_.labels.push_back(i % 2);
    }
  }
  Dataset data_;
};

TEST_F(TokenizeTest, GivesTheIdsOfEachRow) {
  const text::Tokenizer tokenizer = text::Tokenizer::load(path("model"));
  ThreadPool one(1), three(3);
  const TokenizedDataset result = tokenize(data_, tokenizer, 8, one), again = tokenize(data_, tokenizer, 8, three);
  EXPECT_EQ(result.tokens.ids, again.tokens.ids);
  EXPECT_EQ(result.tokens.cu_seqlens, again.tokens.cu_seqlens);
  EXPECT_EQ(result.rows(), 1000);
  EXPECT_EQ(result.labels, data_.labels);
  EXPECT_EQ(result.tokens.max_seqlen, 8);
  int64_t truncated = 0;
  for (size_t row = 0; row < 1000; ++row) {
    const std::vector<int32_t> expected = tokenizer.encode(data_.texts[row], {.max_length = 8}).ids;
    const auto begin = result.tokens.ids.begin() + result.tokens.cu_seqlens[row],
               end = result.tokens.ids.begin() + result.tokens.cu_seqlens[row + 1];
    ASSERT_EQ(std::vector<int32_t>(begin, end), expected) << row;
    truncated += row % 13 > 6;
  }
  EXPECT_EQ(result.truncated, truncated);
  EXPECT_EQ(again.truncated, truncated);
}

TEST_F(TokenizeTest, PairsHaveTypes) {
  Dataset data;
  data.texts = {"a b", "a b c"};
  data.pairs = {"c", "a b c"};
  data.labels = {0, 1};
  ThreadPool pool(2);
  const TokenizedDataset result = tokenize(data, text::Tokenizer::load(path("model")), 7, pool);
  EXPECT_THAT(result.tokens.cu_seqlens, ElementsAre(0, 6, 13));
  EXPECT_THAT(std::vector(result.tokens.ids.begin(), result.tokens.ids.begin() + 6), ElementsAre(2, 5, 6, 3, 7, 3));
  EXPECT_THAT(std::vector(result.tokens.type_ids.begin(), result.tokens.type_ids.begin() + 6), ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_EQ(result.truncated, 1);
}

TEST_F(TokenizeTest, RefusesAnImpossibleLength) {
  ThreadPool pool(1);
  const text::Tokenizer tokenizer = text::Tokenizer::load(path("model"));
  EXPECT_EQ(message_of(ErrorKind::invalid_argument, [&] { tokenize(data_, tokenizer, 0, pool); }), "max_length 0 must be positive");
}

}  // namespace
}  // namespace muster::data
