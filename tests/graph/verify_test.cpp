// The verifier finds each way in which a rewritten graph can be broken.
#include <gtest/gtest.h>

#include <functional>

#include "graph/builder.h"

namespace muster::graph {
namespace {

/// %0 w, %1 x, %2 dot, %3 layer_norm's gamma, %4 layer_norm; outputs y and mean.
Graph sound() {
  Graph g;
  Builder b(g);
  const Value w = b.parameter("w", {3, 4}), x = b.input("x", DType::f32, {kTokens, 4}), y = b.dot(x, w, false, true);
  const Value gamma = b.parameter("gamma", {3}), norm = b.layer_norm(y, gamma, gamma, 1e-5);
  b.output("y", norm);
  b.output("mean", {norm.node, 1});
  return g;
}

std::string complaint(const std::function<void(Graph&)>& damage) {
  Graph g = sound();
  damage(g);
  try {
    verify(g);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::internal);
    return e.what();
  }
  return "none";
}

TEST(Verify, AcceptsASoundGraph) {
  EXPECT_EQ(complaint([](Graph&) {}), "none");
}

TEST(Verify, Order) {
  EXPECT_EQ(complaint([](Graph& g) { std::swap(g.nodes[1], g.nodes[2]); }),
            "[verify] node %1 (dot) uses %1, which does not come before it");
  EXPECT_EQ(complaint([](Graph& g) { g.nodes[2].inputs[1].node = 77; }), "[verify] node %2 (dot) uses %77, which does not come before it");
  EXPECT_EQ(complaint([](Graph& g) { g.nodes[2].inputs[1].node = -1; }), "[verify] node %2 (dot) uses %-1, which does not come before it");
}

TEST(Verify, OutputsOfNodes) {
  EXPECT_EQ(complaint([](Graph& g) { g.nodes[4].inputs[0].output = 1; }), "[verify] node %4 (layer_norm) uses output 1 of %2, which has 1");
  EXPECT_EQ(complaint([](Graph& g) { g.nodes[4].types.pop_back(); }), "[verify] node %4 (layer_norm) has 2 outputs");
  EXPECT_EQ(complaint([](Graph& g) { g.nodes[2].types.clear(); }), "[verify] node %2 (dot) has 0 outputs");
}

TEST(Verify, Types) {
  EXPECT_EQ(complaint([](Graph& g) { g.nodes[2].types[0].dtype = DType::bf16; }),
            "[verify] node %2 (dot) is bf16[T, 3], inference says f32[T, 3]");
  EXPECT_EQ(complaint([](Graph& g) { g.nodes[2].attrs.transpose_b = false; }),
            "[verify] node %2: [dot] inner sizes differ; operands: f32[T, 4], f32[3, 4]");
}

TEST(Verify, Arity) {
  EXPECT_EQ(complaint([](Graph& g) { g.nodes[2].inputs.pop_back(); }),
            "[verify] node %2: [dot] takes 2 to 2 operands; operands: f32[T, 4]");
}

TEST(Verify, Names) {
  EXPECT_EQ(complaint([](Graph& g) { g.nodes[3].name = "x"; }), "[verify] node %3: leaf name 'x' is empty or taken");
  EXPECT_EQ(complaint([](Graph& g) { g.nodes[0].name = ""; }), "[verify] node %0: leaf name '' is empty or taken");
  EXPECT_EQ(complaint([](Graph& g) { g.outputs[1].name = "y"; }), "[verify] output name 'y' is taken");
}

TEST(Verify, Outputs) {
  EXPECT_EQ(complaint([](Graph& g) { g.outputs[0].value.node = 5; }), "[verify] output 'y' is no value of the graph");
  EXPECT_EQ(complaint([](Graph& g) { g.outputs[0].value.output = 3; }), "[verify] output 'y' is no value of the graph");
  EXPECT_EQ(complaint([](Graph& g) { g.outputs[0].value.output = -1; }), "[verify] output 'y' is no value of the graph");
}

}  // namespace
}  // namespace muster::graph
