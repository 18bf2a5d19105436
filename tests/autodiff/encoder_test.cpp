// The gradient of a whole encoder: against finite differences with dropout on, and against PyTorch's for the same weights.
#include "autodiff/encoder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "autodiff/finite_difference.h"
#include "autodiff/gradient.h"
#include "core/hash.h"

namespace muster::autodiff::testing {
namespace {

using graph::Graph;
using graph::Op;
using graph::Value;

/// Three sequences of 4, 1 and 3 tokens; the second has no label.
const ref::Values kBatch{{"ids", {3, 7, 7, 1, 10, 0, 3, 5}},
                         {"positions", {0, 1, 2, 3, 0, 0, 1, 2}},
                         {"cu_seqlens", {0, 4, 5, 8}},
                         {"firsts", {0, 4, 5}},
                         {"labels", {2, -100, 0}}};
const graph::SymbolValues kSymbols{1, 8, 3, 0};

TEST(Encoder, GradientIsTheSlopeOfTheLossUnderDropout) {
  Case c;
  c.result = build_encoder(c.graph,
                           {.vocabulary = 11, .positions = 4, .hidden = 4, .heads = 2, .intermediate = 5, .layers = 2, .classes = 3}, 0.2);
  c.leaves = kBatch, c.symbols = kSymbols;
  for (const int32_t n : c.graph.leaves(Op::parameter)) {
    const graph::Node& p = c.graph.nodes[static_cast<size_t>(n)];
    c.leaves[p.name] = normal(element_count(p.types[0].shape(c.symbols)), fnv1a(p.name));
  }
  expect_gradients_match(std::move(c), 1e-6);
}

TEST(Encoder, LossAndGradientsAreThoseOfPyTorch) {
  std::ifstream file(MUSTER_TEST_DATA "/autodiff/encoder.json");
  const auto golden = nlohmann::json::parse(file);
  Graph g;
  const Value loss = build_encoder(g, {}, 0);
  ref::Values leaves = kBatch;
  std::vector<Value> wrt;
  std::vector<std::string> names;
  for (const int32_t n : g.leaves(Op::parameter)) {
    names.push_back(g.nodes[static_cast<size_t>(n)].name);
    wrt.push_back({n, 0});
    leaves[names.back()] = golden["parameters"].at(names.back()).get<std::vector<double>>();
  }
  ASSERT_EQ(names.size(), golden["parameters"].size());
  const std::vector<Value> gradients = gradient(g, loss, wrt);
  g.outputs = {{"loss", loss}};
  for (size_t k = 0; k < names.size(); ++k) g.outputs.push_back({names[k], gradients[k]});
  const ref::Values out = ref::evaluate(g, leaves, kSymbols);
  EXPECT_NEAR(out.at("loss")[0], golden["loss"].get<double>(), 1e-10);
  for (const std::string& name : names) {
    const auto expected = golden["gradients"].at(name).get<std::vector<double>>();
    ASSERT_EQ(out.at(name).size(), expected.size()) << name;
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(out.at(name)[i], expected[i], 1e-9) << name << "[" << i << "]";
  }
}

}  // namespace
}  // namespace muster::autodiff::testing
