// Declarative cases: a graph before, its text after. That results stay equal is checked on the reference backend.
#include "passes/passes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backend/ref/ref.h"
#include "core/philox.h"
#include "graph/builder.h"

namespace muster::passes {
namespace {

using graph::Builder;
using graph::Graph;
using graph::kTokens;
using graph::Value;

/// Leaves filled at random, by name; integers below 4.
ref::Values random_leaves(const Graph& graph, const graph::SymbolValues& symbols) {
  ref::Values leaves;
  for (const graph::Node& node : graph.nodes) {
    if (node.op != graph::Op::parameter && node.op != graph::Op::input) continue;
    Philox random(7, leaves.size());
    std::vector<double>& values = leaves[node.name];
    for (int64_t i = 0; i < element_count(node.types[0].shape(symbols)); ++i)
      values.push_back(node.types[0].dtype == DType::i32 ? random.below(4) : random.normal());
  }
  return leaves;
}

/// Largest difference of any output between two graphs on the same leaves, relative to the largest value.
double difference(const Graph& a, const Graph& b) {
  const graph::SymbolValues symbols{1, 5, 2, 3};
  const ref::Values leaves = random_leaves(a, symbols);
  const ref::Values left = ref::evaluate(a, leaves, symbols, 11), right = ref::evaluate(b, leaves, symbols, 11);
  EXPECT_EQ(left.size(), right.size());
  double worst = 0;
  for (const auto& [name, values] : left) {
    double largest = 1e-30;
    for (const double v : values) largest = std::max(largest, std::abs(v));
    for (size_t i = 0; i < values.size(); ++i) worst = std::max(worst, std::abs(values[i] - right.at(name)[i]) / largest);
  }
  return worst;
}

TEST(Simplify, MergesEqualNodesAndDropsDeadOnes) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4});
  (void)b.exp(b.neg(x));  // dead
  b.output("y", b.add(b.tanh(x), b.tanh(x)));
  const Graph after = simplify(g);
  EXPECT_EQ(to_string(after), "%0 = input \"x\" : f32[T, 4]\n%1 = tanh(%0) : f32[T, 4]\n%2 = add(%1, %1) : f32[T, 4]\noutput \"y\" = %2\n");
  EXPECT_EQ(difference(g, after), 0);
}

TEST(Simplify, RemovesWhatChangesNoBit) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4});
  Value y = b.mul(x, b.broadcast(b.constant(1.0, {}), {kTokens, 4}, {}));
  y = b.transpose(b.reshape(b.slice(y, 1, 0, 4), {kTokens, 4}), {0, 1});
  y = b.concat({y}, 1);
  b.output("y", b.exp(y));
  EXPECT_EQ(to_string(simplify(g)), "%0 = input \"x\" : f32[T, 4]\n%1 = exp(%0) : f32[T, 4]\noutput \"y\" = %1\n");
}

TEST(Simplify, KeepsAdditionOfZeroAndUnusedLeaves) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens});
  (void)b.parameter("unused", {3});
  b.output("y", b.add(x, b.broadcast(b.constant(0.0, {}), {kTokens}, {})));
  const Graph after = simplify(g);
  EXPECT_EQ(after.leaves(graph::Op::parameter).size(), 1U);
  EXPECT_NE(to_string(after).find("add("), std::string::npos) << "-0 + 0 is 0: another bit";
}

TEST(Simplify, DropoutsOfOneStreamAreOneMaskAndOfTwoAreTwo) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4});
  b.output("same", b.sub(b.dropout(x, 0.5, 1), b.dropout(x, 0.5, 1)));
  b.output("other", b.sub(b.dropout(x, 0.5, 1), b.dropout(x, 0.5, 2)));
  const Graph after = simplify(g);
  size_t dropouts = 0;
  for (const graph::Node& node : after.nodes) dropouts += node.op == graph::Op::dropout;
  EXPECT_EQ(dropouts, 2U);
  EXPECT_EQ(difference(g, after), 0);
}

TEST(Fuse, LinearWithAndWithoutGelu) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4}), w = b.parameter("w", {6, 4}), bias = b.parameter("b", {6});
  const Value y = b.linear(x, w, bias);
  b.output("gelu", b.gelu(y, true));
  b.output("pre", b.neg(y));
  const Graph after = fuse(g);
  EXPECT_EQ(to_string(after),
            "%0 = input \"x\" : f32[T, 4]\n%1 = parameter \"w\" : f32[6, 4]\n%2 = parameter \"b\" : f32[6]\n"
            "%3 = linear(%0, %1, %2) {approximate, activation} : f32[T, 6] f32[T, 6]\n%4 = neg(%3.1) : f32[T, 6]\n"
            "output \"gelu\" = %3\noutput \"pre\" = %4\n");
  EXPECT_LT(difference(g, after), 1e-14);
}

TEST(Fuse, LinearNeedsTheProductForItselfAndABiasOfItsWidth) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4}), w = b.parameter("w", {6, 4});
  const Value product = b.dot(x, w, false, true);
  b.output("twice", b.add(product, product));
  b.output("column", b.add(b.dot(x, b.neg(w), false, true), b.broadcast(b.input("c", DType::f32, {kTokens}), {kTokens, 6}, {0})));
  const Graph after = fuse(g);
  for (const graph::Node& node : after.nodes) EXPECT_NE(node.op, graph::Op::linear);
  EXPECT_EQ(difference(g, after), 0);
}

TEST(Fuse, ResidualDropoutNorm) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 8}), r = b.input("r", DType::f32, {kTokens, 8});
  const Value gamma = b.parameter("gamma", {8}), beta = b.parameter("beta", {8});
  const Value sum = b.add(b.dropout(x, 0.25, 9), r);
  const Value y = b.layer_norm(sum, gamma, beta, 1e-5);
  b.output("y", y);
  b.output("mean", b.exp(Value{y.node, 1}));
  b.output("sum", b.neg(sum));
  const Graph after = fuse(g);
  EXPECT_NE(
      to_string(after).find("residual_layer_norm(%0, %1, %2, %3) {value=1e-05, rate=0.25, stream=9} : f32[T, 8] f32[T, 8] f32[T] f32[T]"),
      std::string::npos)
      << to_string(after);
  EXPECT_EQ(to_string(after).find("dropout("), std::string::npos);
  EXPECT_LT(difference(g, after), 1e-14);
}

TEST(Fuse, NormWhoseSumIsReadEarlierStays) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 8}), r = b.input("r", DType::f32, {kTokens, 8});
  const Value sum = b.add(x, r);
  const Value shifted = b.exp(sum);  // before the norm
  b.output("y", b.layer_norm(sum, b.parameter("gamma", {8}), b.parameter("beta", {8}), 1e-5));
  b.output("e", shifted);
  const Graph after = fuse(g);
  for (const graph::Node& node : after.nodes) EXPECT_NE(node.op, graph::Op::residual_layer_norm);
  EXPECT_EQ(difference(g, after), 0);
}

TEST(Bf16, ProductsAndActivationsNarrowTheRestStaysF32) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4}), w = b.parameter("w", {6, 4});
  const Value rows = b.input("rows", DType::i32, {graph::kSequences});
  const Value y = b.linear(x, w, b.parameter("b", {6}));
  b.output("tokens", b.tanh(y));
  b.output("sum", b.reduce_sum(y, {0}));
  b.output("head", b.dot(b.gather(y, rows), b.parameter("h", {3, 6}), false, true));
  const Graph after = to_bf16(fuse(g));
  verify(after);
  const std::string text = to_string(after);
  EXPECT_NE(text.find("linear("), std::string::npos);
  EXPECT_NE(text.find("{bf16} : bf16[T, 6]"), std::string::npos) << text;
  EXPECT_NE(text.find("tanh("), std::string::npos);
  for (const graph::Output& o : after.outputs) EXPECT_EQ(after.type(o.value).dtype, DType::f32) << o.name << " keeps its type";
  EXPECT_EQ(after.type(*after.find(graph::Op::parameter, "w")).dtype, DType::f32) << "masters stay f32";
  for (const graph::Node& node : after.nodes)
    EXPECT_FALSE(node.op == graph::Op::dot && node.attrs.bf16) << "per-sequence products stay f32";
  EXPECT_LT(difference(g, after), 0.02);
  EXPECT_GT(difference(g, after), 0) << "nothing was rounded";
}

TEST(Bf16, AGraphWithoutTokensIsLeftAlone) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {graph::kSequences, 4});
  b.output("y", b.linear(x, b.parameter("w", {2, 4}), b.parameter("b", {2})));
  EXPECT_EQ(to_string(to_bf16(g)), to_string(simplify(g)));
}

}  // namespace
}  // namespace muster::passes
