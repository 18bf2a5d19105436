// A whole classifier, forward and backward, on the cpu backend against the reference: every output, both precisions, every thread count.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "autodiff/gradient.h"
#include "core/philox.h"
#include "models/classifier.h"
#include "models/inputs.h"
#include "models/weights.h"
#include "runtime/compile.h"

namespace muster::runtime {
namespace {

models::ModelConfig small_config(models::Family family) {
  models::ModelConfig config = models::named_config(family == models::Family::roberta      ? "roberta-base"
                                                    : family == models::Family::distilbert ? "distilbert-base"
                                                                                           : "tiny");
  config.vocab_size = 61, config.hidden_size = 24, config.layers = 2, config.heads = 3, config.intermediate_size = 40;
  models::set_labels(config, {"a", "b", "c"});
  return config;
}

/// The training graph with the gradient of every parameter as an output "grad:<name>".
graph::Graph training_graph(const models::ModelConfig& config, double dropout) {
  models::ClassifierOptions options;
  options.training = true, options.label_smoothing = 0.1, options.dropout = dropout;
  graph::Graph graph = models::build_classifier(config, options);
  std::vector<graph::Value> parameters;
  for (const int32_t n : graph.leaves(graph::Op::parameter)) parameters.push_back({n, 0});
  graph::Value loss;
  for (const graph::Output& o : graph.outputs)
    if (o.name == "loss") loss = o.value;
  const std::vector<graph::Value> gradients = autodiff::gradient(graph, loss, parameters);
  for (size_t i = 0; i < parameters.size(); ++i) graph.outputs.push_back({"grad:" + graph.at(parameters[i]).name, gradients[i]});
  return graph;
}

models::Inputs batch(const models::ModelConfig& config, const std::vector<int32_t>& lengths) {
  Philox random(3);
  std::vector<int32_t> ids, cu_seqlens{0}, labels;
  std::vector<float> weights;
  for (const int32_t length : lengths) {
    for (int32_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>(random.below(61)));
    cu_seqlens.push_back(static_cast<int32_t>(ids.size()));
    labels.push_back(static_cast<int32_t>(random.below(3)));
    weights.push_back(1.0f / static_cast<float>(lengths.size()));
  }
  models::Inputs inputs = models::make_inputs(config, ids, {}, cu_seqlens);
  models::add_labels(inputs, config, labels, weights);
  return inputs;
}

double distance(const Tensor& a, const Tensor& b) {
  double top = 0, bottom = 1e-30;
  for (size_t i = 0; i < a.as<float>().size(); ++i) {
    const double x = a.as<float>()[i], y = b.as<float>()[i];
    top += (x - y) * (x - y), bottom += x * x;
  }
  return std::sqrt(top / bottom);
}

TensorMap clone(const TensorMap& map) {
  TensorMap copy;
  for (const auto& [name, tensor] : map) copy[name] = tensor.clone();
  return copy;
}

class WholeModel : public testing::TestWithParam<models::Family> {};

TEST_P(WholeModel, EveryOutputAgreesWithTheReference) {
  const models::ModelConfig config = small_config(GetParam());
  const models::Parameters parameters = models::init_parameters(config, 5);
  const graph::Graph graph = training_graph(config, 0.1);
  ThreadPool threads(2);
  Options ref, f32, bf16;
  ref.backend = "ref", ref.precision = f32.precision = Precision::f32, bf16.precision = Precision::bf16;
  Session expected(compile(graph, ref, threads), parameters), plain(compile(graph, f32, threads), parameters),
      mixed(compile(graph, bf16, threads), parameters);
  for (const std::vector<int32_t>& lengths : {std::vector<int32_t>{5, 1, 9}, {40, 2}, {3}}) {
    const models::Inputs inputs = batch(config, lengths);
    const TensorMap truth = clone(expected.run(inputs, 99));
    const TensorMap single = clone(plain.run(inputs, 99)), half = clone(mixed.run(inputs, 99));
    for (const auto& [name, tensor] : truth) {
      // The gradient of the keys' bias is zero in exact arithmetic (softmax does not see it): only its size is checked.
      EXPECT_LT(distance(tensor, single.at(name)), 2e-5) << name;
      EXPECT_LT(distance(tensor, half.at(name)), 0.06) << name << " in bf16";
    }
  }
}

TEST_P(WholeModel, SameBitsForAnyNumberOfThreadsAndBatchBefore) {
  const models::ModelConfig config = small_config(GetParam());
  const models::Parameters parameters = models::init_parameters(config, 5);
  const graph::Graph graph = training_graph(config, 0.1);
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    Options options;
    options.precision = precision;
    TensorMap first;
    for (const int count : {1, 2, 5}) {
      ThreadPool threads(count);
      Session session(compile(graph, options, threads), parameters);
      if (count > 1) (void)session.run(batch(config, {17, 30, 2, 2}), 1);  // what the arena holds then must not matter
      const TensorMap& got = session.run(batch(config, {5, 1, 9}), 99);
      if (first.empty()) first = clone(got);
      for (const auto& [name, tensor] : first)
        EXPECT_EQ(std::memcmp(tensor.data(), got.at(name).data(), tensor.bytes()), 0) << name << " with " << count << " threads";
    }
  }
}

TEST_P(WholeModel, PackedEqualsAloneBitForBit) {
  const models::ModelConfig config = small_config(GetParam());
  const models::Parameters parameters = models::init_parameters(config, 5);
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    Options options;
    options.precision = precision;
    ThreadPool threads(2);
    Session session(compile(models::build_classifier(config), options, threads), parameters);
    const std::vector<std::vector<int32_t>> texts{{1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, {3, 2}};
    std::vector<int32_t> ids, cu_seqlens{0};
    for (const auto& text : texts) {
      ids.insert(ids.end(), text.begin(), text.end());
      cu_seqlens.push_back(static_cast<int32_t>(ids.size()));
    }
    const Tensor together = session.run(models::make_inputs(config, ids, {}, cu_seqlens)).at("logits").clone();
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::vector<int32_t> alone{0, static_cast<int32_t>(texts[i].size())};
      const auto logits = session.run(models::make_inputs(config, texts[i], {}, alone)).at("logits").as<float>();
      EXPECT_EQ(std::memcmp(logits.data(), together.as<float>().data() + i * 3, 3 * sizeof(float)), 0) << "text " << i;
    }
  }
}

TEST_P(WholeModel, AccumulatedGradientsAreSums) {
  const models::ModelConfig config = small_config(GetParam());
  const models::Parameters parameters = models::init_parameters(config, 5);
  const graph::Graph graph = training_graph(config, 0);
  ThreadPool threads(2);
  Session session(compile(graph, {}, threads), parameters);
  TensorMap buffers;
  for (const backend::Signature::Slot& slot : session.signature().outputs)
    if (slot.name.starts_with("grad:")) buffers[slot.name] = Tensor(DType::f32, slot.type.shape({1, 1, 1, 1}));
  const models::Inputs one = batch(config, {5, 1}), two = batch(config, {7});
  const TensorMap a = clone(session.run(one)), b = clone(session.run(two));
  (void)session.run_into(one, buffers, 0, false);
  (void)session.run_into(two, buffers, 0, true);
  for (const auto& [name, sum] : buffers) {
    Tensor expected(DType::f32, sum.shape());
    for (size_t i = 0; i < expected.as<float>().size(); ++i)
      expected.as<float>()[i] = a.at(name).as<float>()[i] + b.at(name).as<float>()[i];
    EXPECT_LT(distance(expected, sum), 1e-5) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, WholeModel, testing::Values(models::Family::bert, models::Family::roberta, models::Family::distilbert));

TEST(Compile, PassesCanBeTurnedOffAndDumped) {
  const models::ModelConfig config = small_config(models::Family::bert);
  const models::Parameters parameters = models::init_parameters(config, 5);
  ThreadPool threads(1);
  Options off;
  off.disabled = {"fuse", "simplify"};
  Session plain(compile(training_graph(config, 0.1), {}, threads), parameters),
      unfused(compile(training_graph(config, 0.1), off, threads), parameters);
  const models::Inputs inputs = batch(config, {5, 1, 9});
  const TensorMap a = clone(plain.run(inputs, 4));
  const TensorMap& b = unfused.run(inputs, 4);
  EXPECT_LT(distance(a.at("logits"), b.at("logits")), 1e-5);
  EXPECT_LT(distance(a.at("grad:layer.0.up.weight"), b.at("grad:layer.0.up.weight")), 1e-4);
}

TEST(Session, NamesWhatIsMissing) {
  const models::ModelConfig config = small_config(models::Family::bert);
  ThreadPool threads(1);
  models::Parameters parameters = models::init_parameters(config, 5);
  Session session(compile(models::build_classifier(config), {}, threads), parameters);
  models::Inputs inputs = batch(config, {5});
  inputs.erase("position_ids");
  try {
    (void)session.run(inputs);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("position_ids"), std::string::npos);
  }
  parameters.erase("head.out.bias");
  EXPECT_THROW(Session(compile(models::build_classifier(config), {}, threads), parameters), Error);
}

TEST(Compile, UnknownBackendIsUsage) {
  ThreadPool threads(1);
  Options options;
  options.backend = "gpu";
  try {
    (void)compile(models::build_classifier(small_config(models::Family::bert)), options, threads);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    EXPECT_STREQ(e.what(), "[backend] unknown 'gpu': have cpu, ref");
  }
}

}  // namespace
}  // namespace muster::runtime
