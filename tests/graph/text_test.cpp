// The dump and the hash made of it.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "graph/builder.h"

namespace muster::graph {
namespace {

Graph program() {
  Graph g;
  Builder b(g);
  const Value table = b.parameter("table", {30, 12}), ids = b.input("ids", DType::i32, {kTokens});
  const Value cu_seqlens = b.input("cu_seqlens", DType::i32, {Dim{Symbol::sequences, 1, 1}});
  const Value context = b.attention(b.gather(table, ids), cu_seqlens, 2, 0.1, 7), part = b.slice(table, 1, 3, 7);
  const Value y = b.dropout(b.gelu(b.dot(context, part, false, true), true), 0.25, 8);
  b.output("y", b.convert(b.mul(y, b.constant(0.5, {kTokens, 30})), DType::bf16));
  b.output("lse", {context.node, 1});
  return g;
}

TEST(Dump, IsOneNodeALine) {
  EXPECT_EQ(to_string(program()), R"(%0 = parameter "table" : f32[30, 12]
%1 = input "ids" : i32[T]
%2 = input "cu_seqlens" : i32[B+1]
%3 = gather(%0, %1) : f32[T, 12]
%4 = attention(%3, %2) {rate=0.1, stream=7, heads=2} : f32[T, 4] f32[T, 2]
%5 = slice(%0) {axes=1, start=3, limit=7} : f32[30, 4]
%6 = dot(%4, %5) {transpose_b} : f32[T, 30]
%7 = gelu(%6) {approximate} : f32[T, 30]
%8 = dropout(%7) {rate=0.25, stream=8} : f32[T, 30]
%9 = constant {value=0.5} : f32[T, 30]
%10 = mul(%8, %9) : f32[T, 30]
%11 = convert(%10) : bf16[T, 30]
output "y" = %11
output "lse" = %4.1
)");
}

TEST(Dump, ShowsTheOptimizersNumbers) {
  Graph g;
  Builder b(g);
  const Value p = b.parameter("p", {4});
  Attrs attrs;
  attrs.beta1 = 0.9, attrs.beta2 = 0.999, attrs.value = 1e-8, attrs.weight_decay = 0.01;
  b.emit(Op::adamw, {p, p, p, p, p}, attrs);
  EXPECT_EQ(to_string(g),
            "%0 = parameter \"p\" : f32[4]\n"
            "%1 = adamw(%0, %0, %0, %0, %0) {value=1e-08, beta1=0.9, beta2=0.999, weight_decay=0.01} : f32[4] f32[4] f32[4]\n");
}

TEST(Hash, IsTheSameForTheSameProgram) { EXPECT_EQ(hash(program()), hash(program())); }

/// FNV-1a of the dump above, computed elsewhere. Compile caches outlive a build: a change here must be a decision.
TEST(Hash, IsTheSameInEveryBuild) { EXPECT_EQ(hash(program()), 0x420526478c6f95f6ull); }

TEST(Hash, SeesEveryChange) {
  const std::vector<std::function<void(Graph&)>> changes{
      [](Graph&) {},
      [](Graph& g) { g.nodes[0].name = "words"; },
      [](Graph& g) { g.nodes[0].types[0].dims[0] = 31; },
      [](Graph& g) { g.nodes[0].types[0].dtype = DType::bf16; },
      [](Graph& g) { g.nodes[1].types[0].dims[0] = kSequences; },
      [](Graph& g) { g.nodes[2].types[0].dims[0].offset = 2; },
      [](Graph& g) { g.nodes[4].attrs.heads = 1; },
      [](Graph& g) { g.nodes[4].attrs.rate = 0.1000000000000001; },
      [](Graph& g) { g.nodes[4].attrs.stream = 9; },
      [](Graph& g) { g.nodes[5].attrs.start = 2; },
      [](Graph& g) { g.nodes[5].attrs.axes = {0}; },
      [](Graph& g) { g.nodes[6].attrs.transpose_b = false; },
      [](Graph& g) { g.nodes[6].attrs.transpose_a = true; },
      [](Graph& g) { g.nodes[6].attrs.bf16 = true; },
      [](Graph& g) { g.nodes[6].attrs.body = std::make_shared<Graph>(program()); },
      [](Graph& g) { g.nodes[7].attrs.approximate = false; },
      [](Graph& g) { g.nodes[7].op = Op::tanh; },
      [](Graph& g) { g.nodes[9].attrs.value = 0.25; },
      [](Graph& g) { g.nodes[9].attrs.value = -0.5; },
      [](Graph& g) { std::swap(g.nodes[10].inputs[0], g.nodes[10].inputs[1]); },
      [](Graph& g) { g.outputs[0].name = "z"; },
      [](Graph& g) { g.outputs[1].value.output = 0; },
      [](Graph& g) { g.outputs.pop_back(); },
  };
  std::set<uint64_t> seen;
  for (size_t i = 0; i < changes.size(); ++i) {
    Graph g = program();
    changes[i](g);
    EXPECT_TRUE(seen.insert(hash(g)).second) << "change " << i;
  }
}

TEST(Graph, FindsLeavesByName) {
  const Graph g = program();
  EXPECT_EQ(g.leaves(Op::input), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(g.find(Op::input, "ids"), (Value{1, 0}));
  EXPECT_EQ(g.find(Op::parameter, "ids"), std::nullopt);
}

}  // namespace
}  // namespace muster::graph
