// The Backend around the evaluator: bindings, symbols, dtypes, accumulation, the order of on_output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/ref/support.h"

namespace muster::ref::testing {
namespace {

using graph::Builder;
using graph::Graph;
using graph::kTokens;
using graph::Value;
using ::testing::ElementsAre;

/// y [T, 2] = x w; column sums of y [2]; total [].
Graph program() {
  Graph g;
  Builder b(g);
  const Value w = b.parameter("w", {3, 2}), x = b.input("x", DType::f32, {kTokens, 3});
  const Value y = b.dot(x, w), columns = b.reduce_sum(y, {0});
  b.output("total", b.reduce_sum(columns, {0}));
  b.output("y", y);
  b.output("columns", columns);
  return g;
}

struct Bound {
  std::unique_ptr<backend::Executable> executable = make_backend()->compile(program(), {});
  Tensor w = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}), x = Tensor::from<float>({1, 0, 1, 2, 1, 0}, {2, 3});
  Tensor total{DType::f32, {}}, y{DType::f32, {2, 2}}, columns{DType::f32, {2}};
  backend::Bindings io{.parameters = {w.view()}, .inputs = {x.view()}, .outputs = {total.view(), y.view(), columns.view()}};
};

TEST(Executable, ComputesIntoTheOutputsGiven) {
  Bound r;
  std::vector<size_t> order;
  r.executable->run(r.io, [&](size_t output) { order.push_back(output); });
  EXPECT_THAT(r.y.as<float>(), ElementsAre(6, 8, 5, 8));
  EXPECT_THAT(r.columns.as<float>(), ElementsAre(11, 16));
  EXPECT_THAT(r.total.as<float>(), ElementsAre(27));
  EXPECT_THAT(order, ElementsAre(1, 2, 0)) << "as they become final";
}

TEST(Executable, TakesAnyNumberOfTokensPerRun) {
  Bound r;
  r.x = Tensor::from<float>({1, 1, 1}, {1, 3}), r.y = Tensor(DType::f32, {1, 2});
  r.io.inputs = {r.x.view()}, r.io.outputs[1] = r.y.view();
  r.executable->run(r.io);
  EXPECT_THAT(r.y.as<float>(), ElementsAre(9, 12));
}

TEST(Executable, AccumulatesIntoWhatHasAParametersShapeOnly) {
  Bound r;
  r.io.accumulate = true;
  r.executable->run(r.io);
  r.executable->run(r.io);
  EXPECT_THAT(r.columns.as<float>(), ElementsAre(22, 32));
  EXPECT_THAT(r.y.as<float>(), ElementsAre(6, 8, 5, 8)) << "depends on the batch's size";
  EXPECT_THAT(r.total.as<float>(), ElementsAre(27)) << "is a scalar";
}

TEST(Executable, NamesATensorThatDoesNotFit) {
  Bound r;
  const Tensor wide(DType::f32, {2, 4});
  r.io.inputs = {wide.view()};
  EXPECT_EQ(message_of([&] { r.executable->run(r.io); }), "[run] input 'x' is f32[2, 4], expected f32[2, 3]");
  r.io.inputs = {};
  EXPECT_EQ(message_of([&] { r.executable->run(r.io); }), "[run] 0 inputs given, the program has 1");
}

TEST(Executable, ReadsAndWritesEveryDtype) {
  Graph g;
  Builder b(g);
  const Value rows = b.input("rows", DType::i32, {kTokens}), small = b.input("small", DType::u8, {kTokens});
  const Value long_ids = b.input("long", DType::i64, {kTokens}), half = b.input("half", DType::f16, {kTokens});
  b.output("bf16", b.convert(half, DType::bf16));
  b.output("i64", b.convert(rows, DType::i64));
  b.output("f64", b.convert(long_ids, DType::f64));
  b.output("bool", b.convert(small, DType::boolean));
  const Tensor in[] = {Tensor::from<int32_t>({-3, 7}, {2}), Tensor::from<uint8_t>({0, 200}, {2}),
                       Tensor::from<int64_t>({1LL << 40, -5}, {2}), Tensor::from<F16>({to_f16(1.5f), to_f16(-2)}, {2})};
  const Tensor out[] = {Tensor(DType::bf16, {2}), Tensor(DType::i64, {2}), Tensor(DType::f64, {2}), Tensor(DType::boolean, {2})};
  backend::Bindings io;
  for (const Tensor& t : in) io.inputs.push_back(t.view());
  for (const Tensor& t : out) io.outputs.push_back(t.view());
  make_backend()->compile(g, {})->run(io);
  EXPECT_EQ(to_f32(out[0].as<BF16>()[0]), 1.5f);
  EXPECT_THAT(out[1].as<int64_t>(), ElementsAre(-3, 7));
  EXPECT_THAT(out[2].as<double>(), ElementsAre(0x1p40, -5));
  EXPECT_EQ(static_cast<const uint8_t*>(out[3].data())[0], 0);
  EXPECT_EQ(static_cast<const uint8_t*>(out[3].data())[1], 1);
}

TEST(Executable, RefusesABrokenGraphWhenItIsCompiled) {
  Graph g = program();
  g.nodes[2].inputs[0].node = 9;
  EXPECT_EQ(message_of([&] { make_backend()->compile(g, {}); }, ErrorKind::internal),
            "[verify] node %2 (dot) uses %9, which does not come before it");
}

TEST(Executable, MayUpdateAParameterInPlace) {
  Graph g;
  Builder b(g);
  const Value p = b.parameter("p", {2}), gradient = b.input("gradient", DType::f32, {2}), m = b.input("m", DType::f32, {2});
  const Value v = b.input("v", DType::f32, {2}), scalars = b.input("scalars", DType::f32, {4});
  graph::Attrs attrs;
  attrs.value = 1;
  b.output("p", b.emit(graph::Op::adamw, {p, gradient, m, v, scalars}, attrs));
  const Tensor parameter = Tensor::from<float>({1, 2}, {2}), zero(DType::f32, {2}), d = Tensor::from<float>({3, 0}, {2});
  const Tensor numbers = Tensor::from<float>({0.5, 1, 1, 1}, {4});
  make_backend()->compile(g, {})->run(
      {.parameters = {parameter.view()}, .inputs = {d.view(), zero.view(), zero.view(), numbers.view()}, .outputs = {parameter.view()}});
  EXPECT_THAT(parameter.as<float>(), ElementsAre(1 - 0.5f * 3 / (3 + 1), 2));
}

}  // namespace
}  // namespace muster::ref::testing
