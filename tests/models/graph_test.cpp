// The program of a classifier: its leaves, its dropouts, its symbols.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "models/layers.h"
#include "models/run_model.h"

namespace muster::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::vector<std::string> names(const graph::Graph& graph, graph::Op leaf) {
  std::vector<std::string> result;
  for (const int32_t i : graph.leaves(leaf)) result.push_back(graph.nodes[static_cast<size_t>(i)].name);
  return result;
}
/// Rate of every dropout by its stream, attention's included.
std::map<uint32_t, double> dropouts(const graph::Graph& graph) {
  std::map<uint32_t, double> result;
  for (const graph::Node& node : graph.nodes) {
    if (node.op != graph::Op::dropout && !(node.op == graph::Op::attention && node.attrs.rate > 0)) continue;
    EXPECT_TRUE(result.emplace(node.attrs.stream, node.attrs.rate).second) << "stream " << node.attrs.stream << " twice";
  }
  return result;
}
ModelConfig small(const char* name) {
  ModelConfig c = named_config(name);
  c.hidden_size = 32, c.heads = 4, c.intermediate_size = 64, c.layers = 2, c.vocab_size = 50;
  return c;
}

TEST(Classifier, parameters_are_those_of_the_table) {
  for (const char* name : {"bert-base", "roberta-base", "distilbert-base"}) {
    const ModelConfig c = small(name);
    const graph::Graph graph = build_classifier(c);
    graph::verify(graph);
    std::map<std::string, std::vector<graph::Dim>> in_graph, in_table;
    for (const int32_t i : graph.leaves(graph::Op::parameter))
      in_graph[graph.nodes[static_cast<size_t>(i)].name] = graph.nodes[static_cast<size_t>(i)].types[0].dims;
    for (const ParameterInfo& row : parameter_table(c)) in_table[row.name] = {row.shape.begin(), row.shape.end()};
    EXPECT_EQ(in_graph, in_table) << name;
  }
}

TEST(Classifier, inputs_and_outputs) {
  const graph::Graph bert = build_classifier(small("bert-base"));
  EXPECT_THAT(names(bert, graph::Op::input), UnorderedElementsAre("ids", "type_ids", "position_ids", "cu_seqlens", "first_rows"));
  ASSERT_EQ(bert.outputs.size(), 1u);
  EXPECT_EQ(bert.outputs[0].name, "logits");
  EXPECT_EQ(to_string(bert.type(bert.outputs[0].value)), "f32[B, 2]");

  ClassifierOptions options;
  options.loss = true;
  const graph::Graph distil = build_classifier(small("distilbert-base"), options);
  EXPECT_THAT(names(distil, graph::Op::input),
              UnorderedElementsAre("ids", "position_ids", "cu_seqlens", "first_rows", "labels", "sample_weights"));
  ASSERT_EQ(distil.outputs.size(), 2u);
  EXPECT_EQ(distil.outputs[0].name, "loss");
  EXPECT_EQ(to_string(distil.type(distil.outputs[0].value)), "f32[]");
  EXPECT_THAT(dropouts(distil), testing::IsEmpty());
}

TEST(Classifier, every_dropout_has_its_rate_and_a_stream_of_its_own) {
  ModelConfig c = small("bert-base");
  c.hidden_dropout = 0.125, c.attention_dropout = 0.25, c.classifier_dropout = 0.5;
  ClassifierOptions options;
  options.training = true;
  const std::map<uint32_t, double> bert = dropouts(build_classifier(c, options));
  EXPECT_EQ(bert,
            (std::map<uint32_t, double>{{0, 0.125}, {2, 0.5}, {16, 0.25}, {17, 0.125}, {18, 0.125}, {32, 0.25}, {33, 0.125}, {34, 0.125}}));
  c.layers = 3;
  const std::map<uint32_t, double> deeper = dropouts(build_classifier(c, options));
  EXPECT_EQ(deeper.size(), bert.size() + 3);
  for (const auto& [stream, rate] : bert) EXPECT_EQ(deeper.at(stream), rate);

  c = small("roberta-base");
  EXPECT_EQ(dropouts(build_classifier(c, options)).size(), bert.size() + 1);  // before the head's dense too
  options.dropout = 0;
  EXPECT_THAT(dropouts(build_classifier(c, options)), testing::IsEmpty());
  options.dropout = 1;
  EXPECT_THAT(error_of([&] { (void)build_classifier(c, options); }), HasSubstr("dropout 1 is not in [0, 0.99]"));
  options = {};
  options.loss = true, options.label_smoothing = 1;
  EXPECT_THAT(error_of([&] { (void)build_classifier(c, options); }), HasSubstr("label smoothing 1 is not in [0, 1)"));
}

TEST(Classifier, sample_weights_weigh_and_negative_labels_have_no_loss) {
  const ModelConfig c = small("distilbert-base");
  const Parameters parameters = init_parameters(c, 1);
  ClassifierOptions options;
  options.loss = true;
  const graph::Graph graph = build_classifier(c, options);
  Inputs inputs = pack(c, {{{3, 4, 5}, {}}, {{6}, {}}});
  const auto loss = [&](const std::vector<int32_t>& labels, const std::vector<float>& weights) {
    add_labels(inputs, c, labels, weights);
    return run("ref", graph, parameters, inputs).at("loss").as<float>()[0];
  };
  const float first = loss({0, 1}, {1, 0}), second = loss({0, 1}, {0, 1});
  EXPECT_GT(first, 0);
  EXPECT_FLOAT_EQ(loss({0, 1}, {0.5f, 2}), 0.5f * first + 2 * second);
  EXPECT_FLOAT_EQ(loss({-1, 1}, {1, 1}), second);
}

TEST(Classifier, dropout_depends_on_the_seed) {
  const ModelConfig c = small("bert-base");
  const Parameters parameters = init_parameters(c, 1);
  ClassifierOptions options;
  options.training = true;
  const graph::Graph graph = build_classifier(c, options);
  Inputs inputs = pack(c, {{{3, 4, 5, 7, 8}, {0, 0, 0, 0, 0}}});
  add_labels(inputs, c, std::vector<int32_t>{1}, std::vector<float>{1});
  const auto loss = [&](uint64_t seed) { return run("ref", graph, parameters, inputs, seed).at("loss").as<float>()[0]; };
  EXPECT_EQ(loss(7), loss(7));
  EXPECT_NE(loss(7), loss(8));
}

}  // namespace
}  // namespace muster::models
