// Declarative cases: a graph before, its text after. That results stay equal is checked on the reference backend.
#include "passes/passes.h"

#include <gmock/gmock.h>
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

size_t count(const Graph& graph, graph::Op op) {
  size_t found = 0;
  for (const graph::Node& node : graph.nodes) found += node.op == op;
  return found;
}

TEST(Fuse, WhatFollowsAProductIsItsEpilogue) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4}), w = b.parameter("w", {6, 4}), bias = b.parameter("b", {6});
  const Value y = b.linear(x, w, bias);
  b.output("gelu", b.gelu(y, true));
  b.output("pre", y);
  b.output("sum", b.reduce_sum(y, {0}));
  const Graph after = fuse(g);
  EXPECT_EQ(to_string(after),
            "%0 = input \"x\" : f32[T, 4]\n%1 = parameter \"w\" : f32[6, 4]\n%2 = parameter \"b\" : f32[6]\n"
            "%3 = region(%0, %1, %2) {body=\n"
            "  %0 = input \"0\" : f32[T, 4]\n  %1 = input \"1\" : f32[6, 4]\n  %2 = dot(%0, %1) {transpose_b} : f32[T, 6]\n"
            "  %3 = input \"2\" : f32[6]\n  %4 = broadcast(%3) {axes=1} : f32[T, 6]\n  %5 = add(%2, %4) : f32[T, 6]\n"
            "  %6 = gelu(%5) {approximate} : f32[T, 6]\n  %7 = reduce_sum(%5) {axes=0} : f32[6]\n"
            "  output \"0\" = %5\n  output \"1\" = %6\n  output \"2\" = %7\n"
            "} : f32[T, 6] f32[T, 6] f32[6]\n"
            "output \"gelu\" = %3.1\noutput \"pre\" = %3\noutput \"sum\" = %3.2\n");
  EXPECT_LT(difference(g, after), 1e-14);
}

TEST(Fuse, AWeightGradientHasNoEpilogue) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4}), y = b.input("y", DType::f32, {kTokens, 3});
  b.output("dw", b.neg(b.dot(y, x, true, false)));
  EXPECT_EQ(to_string(fuse(g)), to_string(simplify(g)));
}

TEST(Fuse, DropoutResidualNormIsOneRegionAndItsSumLeaves) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 8}), r = b.input("r", DType::f32, {kTokens, 8});
  const Value sum = b.add(b.dropout(x, 0.25, 9), r);
  const Value y = b.layer_norm(sum, b.parameter("gamma", {8}), b.parameter("beta", {8}), 1e-5);
  b.output("y", y);
  b.output("mean", {y.node, 1});
  b.output("sum", sum);
  const Graph after = fuse(g);
  EXPECT_EQ(count(after, graph::Op::region), 1U);
  EXPECT_EQ(after.nodes.size(), 5U) << to_string(after);
  EXPECT_LT(difference(g, after), 1e-14);
}

TEST(Fuse, ADropoutDoesNotJoinAnEpilogue) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4}), r = b.input("r", DType::f32, {kTokens, 6});
  const Value y = b.linear(x, b.parameter("w", {6, 4}), b.parameter("b", {6}));
  b.output("y", b.add(b.dropout(y, 0.5, 1), r));
  const Graph after = fuse(g);
  EXPECT_EQ(count(after, graph::Op::region), 2U) << to_string(after);
  EXPECT_EQ(difference(g, after), 0);
}

TEST(Fuse, NothingJoinsAcrossWhatIsNotInTheRegion) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 6});
  const Value a = b.neg(b.exp(x));
  const Value crossed = b.dot(a, b.parameter("w", {6, 6}), false, true);  // stands between a and the last sum
  b.output("y", b.tanh(b.add(b.transpose(b.transpose(crossed, {1, 0}), {1, 0}), a)));
  const Graph after = fuse(g);
  EXPECT_EQ(count(after, graph::Op::region), 2U) << to_string(after);
  EXPECT_EQ(difference(g, after), 0);
}

TEST(Fuse, ASumOverTheRowsIsNotReadInItsOwnRegion) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 6});
  const Value a = b.neg(b.exp(x));
  b.output("y", b.neg(b.sub(a, b.broadcast(b.reduce_sum(a, {0}), {kTokens, 6}, {1}))));
  const Graph after = fuse(g);
  EXPECT_EQ(count(after, graph::Op::region), 2U) << to_string(after);
  EXPECT_EQ(difference(g, after), 0);
}

TEST(Fuse, SoftmaxOfPartsIsOneRegion) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 6});
  const auto over_row = [&](Value v) { return b.broadcast(v, {kTokens, 6}, {0}); };
  const Value e = b.exp(b.sub(x, over_row(b.reduce_max(x, {1}))));
  b.output("y", b.div(e, over_row(b.reduce_sum(e, {1}))));
  const Graph after = fuse(g);
  EXPECT_EQ(after.nodes.size(), 2U) << to_string(after);
  EXPECT_EQ(difference(g, after), 0);
}

TEST(Fuse, LoneOperationsAndThoseOverFixedSizesStay) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 6}), w = b.parameter("w", {4, 6});
  b.output("lone", b.exp(x));
  b.output("fixed", b.neg(b.exp(w)));
  EXPECT_EQ(to_string(fuse(g)), to_string(simplify(g)));
}

TEST(Fuse, WhatOnlyAProductReadsIsItsPrologue) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4}), y = b.input("y", DType::f32, {kTokens, 3});
  b.output("dw", b.dot(y, b.gelu(b.neg(x)), true, false));
  const Graph after = fuse(g);
  EXPECT_EQ(to_string(after),
            "%0 = input \"x\" : f32[T, 4]\n%1 = input \"y\" : f32[T, 3]\n%2 = region(%0, %1) {body=\n"
            "  %0 = input \"0\" : f32[T, 4]\n  %1 = neg(%0) : f32[T, 4]\n  %2 = gelu(%1) : f32[T, 4]\n  %3 = input \"1\" : f32[T, 3]\n"
            "  %4 = dot(%3, %2) {transpose_a} : f32[3, 4]\n  output \"0\" = %4\n} : f32[3, 4]\noutput \"dw\" = %2\n");
  EXPECT_EQ(difference(g, after), 0);
}

TEST(Fuse, WhatOthersReadIsNoPrologue) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4}), y = b.input("y", DType::f32, {kTokens, 3});
  const Value a = b.exp(x), dropped = b.dropout(x, 0.5, 1);
  b.output("dw", b.dot(y, a, true, false));
  b.output("a", a);
  b.output("dropped", b.dot(y, dropped, true, false));
  const Value both = b.neg(y);
  b.output("both", b.dot(both, both, true, false));
  EXPECT_EQ(to_string(fuse(g)), to_string(simplify(g)));
}

/// x -> layer norm -> dot -> gelu -> dot and back to the gradients of both weights, as autodiff writes it.
Graph two_layers() {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4}), ct = b.input("ct", DType::f32, {kTokens, 3});
  const Value gamma = b.parameter("gamma", {4}), up = b.parameter("up", {6, 4}), down = b.parameter("down", {3, 6});
  const Value normal = b.layer_norm(x, gamma, b.parameter("beta", {4}), 1e-5);
  const Value before = b.dot(normal, up, false, true), hidden = b.gelu(before);
  b.output("y", b.dot(hidden, down, false, true));
  b.output("ddown", b.dot(ct, hidden, true, false));
  const Value back = b.emit(graph::Op::gelu_grad, {before, b.dot(ct, down)});
  b.output("dup", b.dot(back, normal, true, false));
  const Value norm_back = b.emit(graph::Op::layer_norm_grad, {x, gamma, {normal.node, 1}, {normal.node, 2}, b.dot(back, up)});
  b.output("dx", norm_back);
  b.output("dgamma", {norm_back.node, 1});
  return g;
}

TEST(Rematerialize, GradientsOfWeightsMakeTheirOperandsAgain) {
  const Graph g = two_layers(), after = rematerialize(g);
  EXPECT_EQ(count(after, graph::Op::gelu), 2U);
  EXPECT_EQ(count(after, graph::Op::layer_norm), 1U) << "only its last step is repeated";
  EXPECT_LT(difference(g, after), 1e-14);
  const Graph fused = fuse(after);
  std::vector<std::string> prologues;
  for (const graph::Node& node : fused.nodes)
    if (node.op == graph::Op::region && node.attrs.body->nodes.back().op == graph::Op::dot) {
      std::string ops;
      for (const graph::Node& inner : node.attrs.body->nodes)
        if (inner.op != graph::Op::input && inner.op != graph::Op::broadcast) ops += std::string(info(inner.op).name) + " ";
      prologues.push_back(ops);
    }
  EXPECT_THAT(prologues, testing::UnorderedElementsAre("gelu dot ", "sub mul mul add dot "));
  EXPECT_LT(difference(g, fused), 1e-14);
}

TEST(Rematerialize, InferenceStaysAsItIs) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4});
  const Value y = b.layer_norm(x, b.parameter("gamma", {4}), b.parameter("beta", {4}), 1e-5);
  b.output("y", b.dot(b.gelu(b.dot(y, b.parameter("up", {6, 4}), false, true)), b.parameter("down", {3, 6}), false, true));
  EXPECT_EQ(to_string(rematerialize(g)), to_string(g));
}

TEST(Rematerialize, WithoutAPlaceToMakeItInTheSameIsKept) {
  Graph g;  // nothing keeps what GELU was made of
  Builder b(g);
  const Value hidden = b.gelu(b.input("x", DType::f32, {kTokens, 6}));
  b.output("y", b.neg(hidden));
  b.output("dw", b.dot(b.input("ct", DType::f32, {kTokens, 3}), hidden, true, false));
  EXPECT_EQ(to_string(rematerialize(g)), to_string(g));
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
  EXPECT_NE(text.find("{transpose_b, bf16} : f32[T, 6]"), std::string::npos) << text << "the product, inside its region";
  EXPECT_NE(text.find("} : bf16[T, 6]"), std::string::npos) << text << "what the region stores";
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
