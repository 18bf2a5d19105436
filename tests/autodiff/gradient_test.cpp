// The reverse walk: accumulation, which nodes it touches, and what it refuses.
#include "autodiff/gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autodiff/finite_difference.h"

namespace muster::autodiff {
namespace {

using graph::Builder;
using graph::Graph;
using graph::kTokens;
using graph::Op;
using graph::Value;

std::string message_of(const std::function<void()>& action, ErrorKind kind) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

size_t count(const Graph& g, Op op) { return g.leaves(op).size(); }

TEST(Gradient, OfTheLossItselfIsOne) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {});
  g.outputs = {{"dx", gradient(g, x, std::vector{x})[0]}};
  EXPECT_EQ(ref::evaluate(g, {{"x", {3}}}, {1, 0, 0, 0}).at("dx")[0], 1);
}

TEST(Gradient, AddsWhatComesBackOverSeveralPaths) {
  Graph g;
  Builder b(g);
  const Value x = b.parameter("x", {}), square = b.mul(x, x);
  const Value loss = b.add(b.mul(square, x), square);  // x^3 + x^2
  const std::vector<Value> d = gradient(g, loss, std::vector{x, square});
  g.outputs = {{"dx", d[0]}, {"dsquare", d[1]}};
  const ref::Values out = ref::evaluate(g, {{"x", {3}}}, {1, 0, 0, 0});
  EXPECT_EQ(out.at("dx")[0], 3 * 9 + 2 * 3);
  EXPECT_EQ(out.at("dsquare")[0], 3 + 1);
}

TEST(Gradient, IsAConstantZeroWhereTheLossDoesNotDepend) {
  Graph g;
  Builder b(g);
  const Value x = b.parameter("x", {}), other = b.parameter("other", {2, 3});
  const Value d = gradient(g, b.exp(x), std::vector{other, x})[0];
  EXPECT_EQ(g.at(d).op, Op::constant);
  EXPECT_EQ(g.at(d).attrs.value, 0);
  EXPECT_EQ(to_string(g.type(d)), "f32[2, 3]");
}

TEST(Gradient, TouchesOnlyTheNodesBetween) {
  Graph g;
  Builder b(g);
  const Value x = b.input("x", DType::f32, {kTokens, 4}), w = b.parameter("w", {4, 4}), v = b.parameter("v", {4, 4});
  const Value hidden = b.dot(x, v);  // not wanted: nothing goes back through it
  const Value loss = b.reduce_sum(b.exp(b.dot(hidden, w)), {0, 1});
  const size_t dots = count(g, Op::dot);
  gradient(g, loss, std::vector{w});
  EXPECT_EQ(count(g, Op::dot), dots + 1) << to_string(g);
  EXPECT_NO_THROW(verify(g));
}

TEST(Gradient, DoesNotAskForADerivativeOffThePath) {
  Graph g;
  Builder b(g);
  const Value x = b.parameter("x", {3}), w = b.parameter("w", {3});
  const Value frozen = b.emit(Op::gelu_grad, {x, x});
  EXPECT_NO_THROW(gradient(g, b.reduce_sum(b.mul(frozen, w), {0}), std::vector{w}));
}

TEST(Gradient, RefusesWhatHasNone) {
  Graph g;
  Builder b(g);
  const Value x = b.parameter("x", {3});
  const Value loss = b.reduce_sum(b.emit(Op::gelu_grad, {x, x}), {0});
  EXPECT_EQ(message_of([&] { gradient(g, loss, std::vector{x}); }, ErrorKind::unsupported),
            "[vjp] gelu_grad (node %1) has no rule: second derivatives are not computed");
}

TEST(Gradient, RefusesAStatisticInTheLoss) {
  Graph g;
  Builder b(g);
  const Value x = b.parameter("x", {2, 3}), one = b.parameter("one", {3});
  const Value y = b.layer_norm(x, one, one, 1e-5);
  const Value loss = b.reduce_sum(Value{y.node, 2}, {0});
  EXPECT_EQ(message_of([&] { gradient(g, loss, std::vector{x}); }, ErrorKind::unsupported),
            "[vjp] layer_norm (node %2) has no derivative for its output 2, a statistic: build the loss from output 0");
}

TEST(Gradient, RefusesALossThatIsNoScalarAndAWishThatIsNoFloat) {
  Graph g;
  Builder b(g);
  const Value x = b.parameter("x", {2}), rows = b.input("rows", DType::i32, {kTokens});
  EXPECT_EQ(message_of([&] { gradient(g, x, std::vector{x}); }, ErrorKind::invalid_argument),
            "[gradient] the loss is f32[2], it must be f32[]");
  const Value loss = b.reduce_sum(x, {0});
  EXPECT_EQ(message_of([&] { gradient(g, loss, std::vector{rows}); }, ErrorKind::invalid_argument),
            "[gradient] %1 is i32[T]: only floats have gradients");
}

TEST(Gradient, PassesTheFlagsOfDropoutAndGeluOn) {
  Graph g;
  Builder b(g);
  const Value x = b.parameter("x", {4});
  const Value loss = b.reduce_sum(b.gelu(b.dropout(x, 0.25, 9), true), {0});
  gradient(g, loss, std::vector{x});
  const std::string text = to_string(g);
  EXPECT_THAT(text, ::testing::HasSubstr("gelu_grad(%1, %5) {approximate}"));
  EXPECT_EQ(count(g, Op::dropout), 2u);
  const graph::Node& back = g.nodes[static_cast<size_t>(g.leaves(Op::dropout)[1])];
  EXPECT_EQ(back.attrs.rate, 0.25);
  EXPECT_EQ(back.attrs.stream, 9u);
}

}  // namespace
}  // namespace muster::autodiff
