#include "models/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/run_model.h"

namespace muster::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int32_t> values(const Inputs& inputs, const char* name) {
  const auto v = inputs.at(name).as<int32_t>();
  return {v.begin(), v.end()};
}
std::string refused(const ModelConfig& config, const std::vector<int32_t>& ids, const std::vector<int32_t>& types,
                    const std::vector<int32_t>& cu_seqlens) {
  return error_of([&] { (void)make_inputs(config, ids, types, cu_seqlens); });
}

TEST(Inputs, positions_restart_at_each_sequence) {
  const std::vector<int32_t> ids{5, 6, 7, 8, 9, 10}, cu_seqlens{0, 3, 4, 6};
  const Inputs bert = make_inputs(named_config("bert-base"), ids, {}, cu_seqlens);
  EXPECT_THAT(values(bert, "ids"), ElementsAre(5, 6, 7, 8, 9, 10));
  EXPECT_THAT(values(bert, "position_ids"), ElementsAre(0, 1, 2, 0, 0, 1));
  EXPECT_THAT(values(bert, "type_ids"), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(values(bert, "cu_seqlens"), ElementsAre(0, 3, 4, 6));
  EXPECT_THAT(values(bert, "first_rows"), ElementsAre(0, 3, 4));
  EXPECT_THAT(values(make_inputs(named_config("roberta-base"), ids, {}, cu_seqlens), "position_ids"), ElementsAre(2, 3, 4, 2, 2, 3));
  EXPECT_FALSE(make_inputs(named_config("distilbert-base"), ids, ids, cu_seqlens).contains("type_ids"));
  const std::vector<int32_t> types{0, 1, 1, 0, 0, 1};
  EXPECT_THAT(values(make_inputs(named_config("bert-base"), ids, types, cu_seqlens), "type_ids"), ElementsAre(0, 1, 1, 0, 0, 1));
}

TEST(Inputs, errors_say_where) {
  ModelConfig c = named_config("roberta-base");
  EXPECT_THAT(refused(c, {}, {}, {0}), HasSubstr("at least one sequence"));
  EXPECT_THAT(refused(c, {}, {}, {}), HasSubstr("at least one sequence"));
  EXPECT_THAT(refused(c, {1, 2}, {}, {0, 1}), HasSubstr("cu_seqlens goes from 0 to 1, but the batch has 2 tokens"));
  EXPECT_THAT(refused(c, {1, 2}, {}, {1, 2}), HasSubstr("cu_seqlens goes from 1 to 2"));
  EXPECT_THAT(refused(c, {1, 2}, {}, {0, 2, 2}), HasSubstr("sequence 1 of the batch has 0 tokens"));
  EXPECT_THAT(refused(c, {1, 2}, {}, {0, 3, 2}), HasSubstr("sequence 1 of the batch has -1 tokens"));
  EXPECT_THAT(refused(c, {1, 2, 50265}, {}, {0, 1, 3}),
              HasSubstr("sequence 1, token 1: id 50265 is not below the model's vocab_size 50265"));
  EXPECT_THAT(refused(c, {-1}, {}, {0, 1}), HasSubstr("sequence 0, token 0: id -1"));
  EXPECT_THAT(refused(c, {1, 2}, {0, 1}, {0, 2}),
              HasSubstr("sequence 0, token 1: token type 1 is not below the model's type_vocab_size 1"));
  EXPECT_THAT(refused(c, {1, 2}, {0}, {0, 2}), HasSubstr("the batch has 2 tokens, but 1 token types"));
  EXPECT_EQ(refused(c, std::vector<int32_t>(512, 5), {}, {0, 512}), "nothing thrown");
  EXPECT_THAT(refused(c, std::vector<int32_t>(513, 5), {}, {0, 513}),
              HasSubstr("sequence 0 of the batch has 513 tokens; the model takes at most 512"));
}

TEST(Inputs, labels_are_checked) {
  const ModelConfig c = named_config("tiny");
  Inputs inputs = make_inputs(c, std::vector<int32_t>{5, 6}, {}, std::vector<int32_t>{0, 1, 2});
  const auto refused_labels = [&](const std::vector<int32_t>& labels, const std::vector<float>& weights) {
    return error_of([&] { add_labels(inputs, c, labels, weights); });
  };
  EXPECT_THAT(refused_labels({0}, {1, 1}), HasSubstr("2 sequences, but 1 labels and 2 sample weights"));
  EXPECT_THAT(refused_labels({0, 2}, {1, 1}), HasSubstr("sequence 1 of the batch has label 2; the model has 2 labels"));
  add_labels(inputs, c, std::vector<int32_t>{-100, 1}, std::vector<float>{0.25f, 0.75f});
  EXPECT_THAT(values(inputs, "labels"), ElementsAre(-100, 1));
  EXPECT_THAT(inputs.at("sample_weights").as<float>(), ElementsAre(0.25f, 0.75f));
}

}  // namespace
}  // namespace muster::models
