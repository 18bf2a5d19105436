// What Transformers computes with the same folders: logits and losses, for each family and stored type, on each backend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/gradient.h"
#include "graph/graph.h"
#include "models/run_model.h"

namespace muster::models {
namespace {

class Goldens : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  [[nodiscard]] std::string backend() const { return std::get<0>(GetParam()); }
  [[nodiscard]] std::string folder() const { return data_folder(std::get<1>(GetParam())); }
  const ModelConfig config_ = read_config(folder());
  LoadReport report_;
  const Parameters parameters_ = load_parameters(folder(), config_, {}, report_);
  const Golden golden_ = read_golden(folder());
};

TEST_P(Goldens, logits_are_those_of_transformers) {
  EXPECT_THAT(report_.initialised, testing::IsEmpty());
  EXPECT_THAT(report_.unused, testing::IsEmpty());
  const graph::Graph graph = build_classifier(config_);
  graph::verify(graph);
  const Inputs out = run(backend(), graph, parameters_, pack(config_, golden_.sequences));
  const Tensor& logits = out.at("logits");
  ASSERT_EQ(logits.shape(), (Shape{static_cast<int64_t>(golden_.logits.size()), 3}));
  for (size_t s = 0; s < golden_.logits.size(); ++s)
    for (size_t c = 0; c < 3; ++c)
      EXPECT_NEAR(logits.as<float>()[s * 3 + c], golden_.logits[s][c], 2e-5) << "sequence " << s << " label " << c;
}

TEST_P(Goldens, a_sequence_in_a_batch_is_the_sequence_alone) {
  const graph::Graph graph = build_classifier(config_);
  const Tensor packed = run(backend(), graph, parameters_, pack(config_, golden_.sequences)).at("logits");
  for (size_t s = 0; s < golden_.sequences.size(); ++s) {
    const Tensor alone = run(backend(), graph, parameters_, pack(config_, {golden_.sequences[s]})).at("logits");
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(packed.as<float>()[s * 3 + c], alone.as<float>()[c]) << "sequence " << s << " label " << c;
  }
}

TEST_P(Goldens, a_saved_folder_says_the_same) {
  const TemporaryFolder saved;
  save_parameters(saved.path(), config_, parameters_);
  const ModelConfig config = read_config(saved.path());
  LoadReport report;
  const Parameters parameters = load_parameters(saved.path(), config, {}, report);
  EXPECT_THAT(report.initialised, testing::IsEmpty());
  EXPECT_THAT(report.unused, testing::IsEmpty());
  const Inputs inputs = pack(config_, golden_.sequences);
  const Tensor before = run(backend(), build_classifier(config_), parameters_, inputs).at("logits");
  const Tensor after = run(backend(), build_classifier(config), parameters, inputs).at("logits");
  EXPECT_THAT(after.as<float>(), testing::ElementsAreArray(before.as<float>()));
}

class Losses : public Goldens {
 protected:
  [[nodiscard]] Inputs first_batch() const {
    const GoldenStep& first = golden_.steps.front();
    Inputs inputs = pack(config_, first.sequences);
    const size_t batch = first.labels.size();
    add_labels(inputs, config_, first.labels, std::vector<float>(batch, 1.0f / static_cast<float>(batch)));
    return inputs;
  }
};

TEST_P(Losses, are_those_of_pytorch) {
  ClassifierOptions options;
  options.loss = true;
  const Inputs plain = run(backend(), build_classifier(config_, options), parameters_, first_batch());
  EXPECT_EQ(plain.at("loss").shape(), Shape{});
  EXPECT_NEAR(plain.at("loss").as<float>()[0], golden_.steps.front().loss, 1e-5);

  options.label_smoothing = golden_.smoothing;
  const Inputs smoothed = run(backend(), build_classifier(config_, options), parameters_, first_batch());
  EXPECT_NEAR(smoothed.at("loss").as<float>()[0], golden_.smoothed_loss, 1e-5);
}

TEST_P(Losses, have_the_gradient_of_pytorch) {
  ClassifierOptions options;
  options.training = true, options.dropout = 0;
  graph::Graph graph = build_classifier(config_, options);
  std::vector<graph::Value> parameters;
  for (const int32_t node : graph.leaves(graph::Op::parameter)) parameters.push_back({node, 0});
  const std::vector<graph::Value> gradients = autodiff::gradient(graph, graph.outputs.front().value, parameters);
  for (size_t i = 0; i < parameters.size(); ++i) graph.outputs.push_back({"d " + graph.at(parameters[i]).name, gradients[i]});

  double squares = 0;
  for (const auto& [name, tensor] : run(backend(), graph, parameters_, first_batch())) {
    if (!name.starts_with("d ")) continue;
    for (const float v : tensor.as<float>()) squares += double{v} * v;
  }
  EXPECT_NEAR(std::sqrt(squares), golden_.steps.front().grad_norm, 1e-4 * golden_.steps.front().grad_norm);
}

const auto kName = [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param); };
INSTANTIATE_TEST_SUITE_P(models, Losses, testing::Combine(testing::Values("ref", "cpu"), testing::Values("bert", "roberta", "distilbert")),
                         kName);
INSTANTIATE_TEST_SUITE_P(models, Goldens,
                         testing::Combine(testing::Values("ref", "cpu"),
                                          testing::Values("bert", "roberta", "distilbert", "bert_bf16", "roberta_f16")),
                         kName);

}  // namespace
}  // namespace muster::models
