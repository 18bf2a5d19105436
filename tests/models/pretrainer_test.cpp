// Masked language models against Transformers' own: logits of masked positions, next-sentence logits, losses, on both backends; and
// folders that say the same after they were saved.
#include "models/pretrainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "models/run_model.h"

namespace muster::models {
namespace {

using nlohmann::json;

/// A batch of golden.json as inputs, means as weights.
Inputs inputs_of(const ModelConfig& config, const json& batch) {
  std::vector<Sequence> sequences;
  std::vector<int32_t> starts{0};
  for (const json& s : batch["sequences"]) {
    sequences.push_back({s["ids"].get<std::vector<int32_t>>(), s.value("type_ids", std::vector<int32_t>())});
    starts.push_back(starts.back() + static_cast<int32_t>(sequences.back().ids.size()));
  }
  Inputs inputs = pack(config, sequences);
  std::vector<int32_t> rows, labels;
  for (const json& m : batch["masked"]) {
    rows.push_back(starts[m[0].get<size_t>()] + m[1].get<int32_t>());
    labels.push_back(m[2].get<int32_t>());
  }
  add_masks(inputs, config, rows, labels, std::vector<float>(rows.size(), 1.0f / static_cast<float>(rows.size())));
  if (config.head == Head::pretraining)
    add_next(inputs, batch["next_labels"].get<std::vector<int32_t>>(),
             std::vector<float>(sequences.size(), 1.0f / static_cast<float>(sequences.size())));
  return inputs;
}

class Pretrainer : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  [[nodiscard]] std::string backend() const { return std::get<0>(GetParam()); }
  [[nodiscard]] std::string folder() const { return data_folder(std::get<1>(GetParam())); }
  const ModelConfig config_ = read_config(folder());
  LoadReport report_;
  const Parameters parameters_ = load_parameters(folder(), config_, {}, report_);
  const json golden_ = json::parse(std::ifstream(folder() + "/golden.json"));
};

void expect_near(const Tensor& got, const json& rows, double tolerance) {
  const auto values = got.as<float>();
  size_t i = 0;
  for (const json& row : rows)
    for (const json& v : row) {
      ASSERT_LT(i, values.size());
      EXPECT_NEAR(values[i], v.get<double>(), tolerance) << "element " << i;
      ++i;
    }
  EXPECT_EQ(i, values.size());
}

TEST_P(Pretrainer, LogitsAndLossesAreThoseOfTransformers) {
  EXPECT_THAT(report_.initialised, testing::IsEmpty());
  EXPECT_THAT(report_.unused, testing::IsEmpty());
  const Inputs inputs = inputs_of(config_, golden_);
  PretrainerOptions bare;
  bare.loss = false;
  const Inputs logits = run(backend(), build_pretrainer(config_, bare), parameters_, inputs);
  expect_near(logits.at("logits"), golden_["logits"], 5e-5);
  const Inputs out = run(backend(), build_pretrainer(config_), parameters_, inputs);
  EXPECT_NEAR(out.at("loss").as<float>()[0], golden_["loss"].get<double>(), 1e-5);
  EXPECT_NEAR(out.at("mlm_loss").as<float>()[0], golden_["mlm_loss"].get<double>(), 1e-5);
  if (config_.head == Head::pretraining) {
    expect_near(logits.at("next_logits"), golden_["next_logits"], 5e-5);
    EXPECT_NEAR(out.at("nsp_loss").as<float>()[0], golden_["nsp_loss"].get<double>(), 1e-5);
  }
  // The label is the likeliest exactly where its logit, lse - loss, is the largest.
  const auto lse = out.at("mlm_lse").as<float>(), losses = out.at("mlm_losses").as<float>(), best = out.at("mlm_best").as<float>();
  const auto all = logits.at("logits").as<float>();
  for (size_t p = 0; p < losses.size(); ++p) {
    const auto row = all.subspan(p * static_cast<size_t>(config_.vocab_size), static_cast<size_t>(config_.vocab_size));
    const auto label = golden_["masked"][p][2].get<size_t>();
    EXPECT_NEAR(lse[p] - losses[p], row[label], 1e-4);
    EXPECT_EQ(best[p], *std::max_element(row.begin(), row.end()));
  }
}

TEST_P(Pretrainer, ASavedFolderSaysTheSameAndFineTuningTakesItsEncoder) {
  const TemporaryFolder saved;
  save_parameters(saved.path(), config_, parameters_);
  ModelConfig config = read_config(saved.path());
  EXPECT_EQ(config.head, config_.head);
  LoadReport report;
  const Parameters parameters = load_parameters(saved.path(), config, {}, report);
  EXPECT_THAT(report.initialised, testing::IsEmpty());
  EXPECT_THAT(report.unused, testing::IsEmpty());
  for (const auto& [name, tensor] : parameters_)
    EXPECT_THAT(parameters.at(name).as<float>(), testing::ElementsAreArray(tensor.as<float>())) << name;
  config.head = Head::classification;
  LoadReport tuned;
  const Parameters classifier = load_parameters(saved.path(), config, {}, tuned);
  EXPECT_TRUE(classifier.contains("head.out.weight"));
  EXPECT_FALSE(tuned.initialised.empty()) << "the classifier's head is new";
  EXPECT_FALSE(tuned.unused.empty()) << "the language model's head is left";
}

TEST_P(Pretrainer, BadMasksAreNamed) {
  Inputs inputs = pack(config_, {{{5, 6, 7}, {}}});
  const std::vector<float> weight{1};
  EXPECT_THAT(error_of([&] { add_masks(inputs, config_, std::vector{3}, std::vector{5}, weight); }),
              testing::HasSubstr("row 3, but the batch has 3 tokens"));
  EXPECT_THAT(error_of([&] { add_masks(inputs, config_, std::vector{0}, std::vector{120}, weight); }), testing::HasSubstr("label 120"));
  EXPECT_THAT(error_of([&] { add_masks(inputs, config_, std::vector{0, 1}, std::vector{5}, weight); }),
              testing::HasSubstr("2 masked positions"));
  EXPECT_THAT(error_of([&] { add_next(inputs, std::vector{2}, weight); }), testing::HasSubstr("label is 2"));
  ModelConfig other = config_;
  other.head = Head::classification;
  EXPECT_THAT(error_of([&] { (void)build_pretrainer(other); }), testing::HasSubstr("ForSequenceClassification"));
}

INSTANTIATE_TEST_SUITE_P(Models, Pretrainer,
                         testing::Combine(testing::Values("ref", "cpu"),
                                          testing::Values("bert_pretraining", "roberta_mlm", "distilbert_mlm")),
                         [](const auto& p) { return std::get<0>(p.param) + "_" + std::get<1>(p.param); });

}  // namespace
}  // namespace muster::models
