#include "serve/answer.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/philox.h"

namespace muster::serve {
namespace {
using testing::ElementsAre;
using testing::FloatEq;

std::string number(float x) {
  std::string out;
  append_number(out, x);
  return out;
}

TEST(Scores, SoftmaxNeverOverflows) {
  EXPECT_THAT(scores_of(std::vector<float>{0, 0}, ScoreFunction::softmax), ElementsAre(0.5F, 0.5F));
  // The shift by the largest absolute value, as one server does it, gives NaN here.
  EXPECT_THAT(scores_of(std::vector<float>{0, -1000, -2000}, ScoreFunction::softmax), ElementsAre(1, 0, 0));
  EXPECT_THAT(scores_of(std::vector<float>{3e38F, -3e38F}, ScoreFunction::softmax), ElementsAre(1, 0));
  EXPECT_THAT(scores_of(std::vector<float>{-3e38F, -3e38F}, ScoreFunction::softmax), ElementsAre(0.5F, 0.5F));
  EXPECT_THAT(scores_of(std::vector<float>{1, 2, 3}, ScoreFunction::softmax),
              ElementsAre(FloatEq(0.09003057F), FloatEq(0.24472848F), FloatEq(0.66524094F)));
  EXPECT_THAT(scores_of(std::vector<float>{7}, ScoreFunction::softmax), ElementsAre(1));
}

TEST(Scores, SigmoidAndNone) {
  EXPECT_THAT(scores_of(std::vector<float>{0, 2, 1000, -1000}, ScoreFunction::sigmoid), ElementsAre(0.5F, FloatEq(0.8807971F), 1, 0));
  EXPECT_THAT(scores_of(std::vector<float>{-1.5F, 7}, ScoreFunction::none), ElementsAre(-1.5F, 7));
}

TEST(Scores, RankedIsStable) {
  const std::vector<float> logits{1, 3, 3, 2};
  EXPECT_THAT(ranked(logits, std::nullopt), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(ranked(logits, 2), ElementsAre(1, 2));
  EXPECT_THAT(ranked(logits, 99), ElementsAre(1, 2, 3, 0));
}

TEST(Numbers, ShortestThatReadsBack) {
  EXPECT_EQ(number(0.1F), "0.1");
  EXPECT_EQ(number(1), "1.0");
  EXPECT_EQ(number(0), "0.0");
  EXPECT_EQ(number(-0.0F), "-0.0");
  EXPECT_EQ(number(1e-5F), "1e-05");
  EXPECT_EQ(number(0.33333334F), "0.33333334");
  EXPECT_EQ(number(16777216), "16777216.0");
  Philox random(3);
  for (int i = 0; i < 20000; ++i) {
    const float x = std::bit_cast<float>(random.next());
    if (!std::isfinite(x)) continue;
    ASSERT_EQ(std::strtof(number(x).c_str(), nullptr), x);
  }
}

class Shapes : public testing::Test {
 protected:
  ItemResult result(float a, float b) { return {.logits = {a, b}, .failure = {}}; }
  std::string write(std::vector<Question> questions, std::vector<ItemResult> results, bool lines = false, Media accept = Media::json) {
    Invocation invocation{.questions = std::move(questions), .lines = lines, .accept = accept};
    return write_answer(invocation, results, model);
  }
  ModelInfo model{.name = {}, .model_type = {}, .labels = {"a", "b\n"}, .precision = {}};
  Parameters all{.top_k_given = true, .top_k = {}, .function_to_apply = {}, .tokenize = {}};
  Parameters one{.top_k_given = true, .top_k = 1, .function_to_apply = ScoreFunction::none, .tokenize = {}};
};

TEST_F(Shapes, OfThePipeline) {
  EXPECT_EQ(write({{.texts = {"x"}}}, {result(0, 0)}), R"([{"label": "a", "score": 0.5}])");
  EXPECT_EQ(write({{.texts = {"x"}, .is_list = true}}, {result(0, 9e9F)}), R"([{"label": "b\n", "score": 1.0}])");
  EXPECT_EQ(write({{.texts = {"x", "y"}, .is_list = true}}, {result(0, 0), result(-1000, 0)}),
            R"([{"label": "a", "score": 0.5}, {"label": "b\n", "score": 1.0}])");
  EXPECT_EQ(write({{.texts = {"x"}, .parameters = all}}, {result(-1000, 0)}),
            R"([{"label": "b\n", "score": 1.0}, {"label": "a", "score": 0.0}])");
  EXPECT_EQ(write({{.texts = {"x"}, .parameters = one}}, {result(2, 1.5F)}), R"([{"label": "a", "score": 2.0}])");
  EXPECT_EQ(write({{.texts = {"x", "y"}, .is_list = true, .parameters = one}}, {result(2, 1.5F), result(0, 1)}),
            R"([[{"label": "a", "score": 2.0}], [{"label": "b\n", "score": 1.0}]])");
}

TEST_F(Shapes, Lines) {
  const Question single{.texts = {"x"}}, list{.texts = {"x", "y"}, .is_list = true};
  const std::string a = R"({"label": "a", "score": 0.5})";
  const std::vector<ItemResult> three{result(0, 0), result(0, 0), result(0, 0)}, two{result(0, 0), result(0, 0)};
  EXPECT_EQ(write({single, list}, three, true, Media::json_lines), "[" + a + "]\n[" + a + ", " + a + "]\n");
  EXPECT_EQ(write({single, list}, three, true, Media::json), "[[" + a + "], [" + a + ", " + a + "]]");
  EXPECT_EQ(write({list}, two, false, Media::json_lines), a + "\n" + a + "\n");
  EXPECT_EQ(write({single}, {result(0, 0)}, false, Media::json_lines), "[" + a + "]\n");
}

}  // namespace
}  // namespace muster::serve
