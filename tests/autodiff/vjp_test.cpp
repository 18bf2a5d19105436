// Every rule of vjp_rules.cpp against finite differences. The switch has no default: a new op does not compile until it has a case.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "autodiff/finite_difference.h"
#include "autodiff/gradient.h"

namespace muster::autodiff::testing {
namespace {

using graph::Attrs;
using graph::Builder;
using graph::kPredictions;
using graph::kSequences;
using graph::kTokens;
using graph::Op;
using graph::Symbol;
using graph::Value;

/// op(x [T, 3], ...) with values in [low, high).
Case elementwise(Op op, int operands, double low = -2, double high = 2) {
  Case c;
  std::vector<Value> in;
  for (int k = 0; k < operands; ++k)
    in.push_back(float_leaf(c, fmt::format("x{}", k), {kTokens, 3}, uniform(15, static_cast<uint64_t>(k) + 1, low, high)));
  c.result = Builder(c.graph).emit(op, in);
  return c;
}

Case gelu(bool approximate) {
  Case c;
  c.result = Builder(c.graph).gelu(normal_leaf(c, "x", {kTokens, 3}), approximate);
  return c;
}

Case dot(bool transpose_a, bool transpose_b) {
  Case c;
  const Value a = normal_leaf(c, "a", transpose_a ? std::vector<graph::Dim>{4, kTokens} : std::vector<graph::Dim>{kTokens, 4});
  const Value b = normal_leaf(c, "b", transpose_b ? std::vector<graph::Dim>{3, 4} : std::vector<graph::Dim>{4, 3});
  c.result = Builder(c.graph).dot(a, b, transpose_a, transpose_b);
  return c;
}

Case attention(double rate) {
  Case c;
  c.symbols = {1, 7, 3, 0};
  const Value qkv = normal_leaf(c, "qkv", {kTokens, 24});
  const Value cu_seqlens = integer_leaf(c, "cu_seqlens", {graph::Dim{Symbol::sequences, 1, 1}}, {0, 4, 5, 7});
  c.result = Builder(c.graph).attention(qkv, cu_seqlens, 2, rate, 3);
  return c;
}

Case cross_entropy(double smoothing) {
  Case c;
  const Value logits = normal_leaf(c, "logits", {kPredictions, 4});
  c.result = Builder(c.graph).softmax_cross_entropy(logits, integer_leaf(c, "labels", {kPredictions}, {2, -100, 0}), smoothing);
  return c;
}

/// Programs whose derivative is checked; none for an op that has no derivative or takes no operand.
std::vector<Case> cases_of(Op op) {
  Case c;
  Builder b(c.graph);
  switch (op) {
    case Op::parameter:
    case Op::input:
    case Op::constant: return {};
    case Op::neg:
    case Op::exp:
    case Op::tanh:
    case Op::erf: return {elementwise(op, 1)};
    case Op::log:
    case Op::sqrt:
    case Op::rsqrt: return {elementwise(op, 1, 0.5, 3)};
    case Op::gelu: return {gelu(false), gelu(true)};
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::maximum: return {elementwise(op, 2)};
    case Op::div: return {elementwise(op, 2, 0.5, 3)};
    case Op::convert: c.result = b.convert(b.convert(normal_leaf(c, "x", {kTokens, 3}), DType::f64), DType::f32); return {c};
    case Op::select: {
      const Value x = normal_leaf(c, "x", {kTokens, 3}), y = normal_leaf(c, "y", {kTokens, 3});
      c.result = b.select(b.greater(x, y), b.mul(x, x), b.exp(y));
      return {c};
    }
    case Op::dropout: c.result = b.dropout(normal_leaf(c, "x", {kTokens, 3}), 0.4, 5); return {c};
    case Op::broadcast: c.result = b.broadcast(normal_leaf(c, "x", {kTokens, 2}), {3, kTokens, 4, 2}, {1, 3}); return {c};
    case Op::reshape: c.result = b.reshape(normal_leaf(c, "x", {kTokens, 6}), {kTokens, 2, 3}); return {c};
    case Op::transpose: c.result = b.transpose(normal_leaf(c, "x", {2, kTokens, 3}), {2, 0, 1}); return {c};
    case Op::slice: {
      const Value x = normal_leaf(c, "x", {kTokens, 6});
      c.result = b.add(b.add(b.slice(x, 1, 0, 2), b.slice(x, 1, 3, 5)), b.slice(x, 1, 4, 6));
      return {c};
    }
    case Op::concat: {
      const Value x = normal_leaf(c, "x", {kTokens, 2}), y = normal_leaf(c, "y", {kTokens, 3});
      c.result = b.concat({x, y, x}, 1);
      return {c};
    }
    case Op::reduce_sum:
    case Op::reduce_max: {
      Attrs attrs;
      attrs.axes = {2, 0};
      c.result = b.emit(op, {normal_leaf(c, "x", {2, kTokens, 3})}, attrs);
      return {c};
    }
    case Op::dot: return {dot(false, false), dot(false, true), dot(true, false), dot(true, true)};
    case Op::gather: c.result = b.gather(normal_leaf(c, "table", {4, 3}), integer_leaf(c, "rows", {kTokens}, {3, 0, 3, 3, 1})); return {c};
    case Op::scatter_add:
      c.result = b.scatter_add(normal_leaf(c, "updates", {kTokens, 3}), integer_leaf(c, "rows", {kTokens}, {3, 0, 3, 3, 1}), {4, 3});
      return {c};
    case Op::layer_norm:
      c.result = b.layer_norm(normal_leaf(c, "x", {kTokens, 6}), normal_leaf(c, "gamma", {6}), normal_leaf(c, "beta", {6}), 1e-3);
      return {c};
    case Op::attention: return {attention(0), attention(0.3)};
    case Op::softmax_cross_entropy: return {cross_entropy(0), cross_entropy(0.1)};
    case Op::greater:
    case Op::gelu_grad:
    case Op::layer_norm_grad:
    case Op::attention_grad:
    case Op::softmax_cross_entropy_grad:
    case Op::adamw:
    case Op::lamb:
    case Op::region: return {};
  }
  return {};
}

class Vjp : public ::testing::TestWithParam<int> {};

TEST_P(Vjp, IsTheSlopeOfTheForward) {
  for (Case& c : cases_of(static_cast<Op>(GetParam()))) {
    SCOPED_TRACE(to_string(c.graph));
    expect_gradients_match(std::move(c));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryOp, Vjp, ::testing::Range(0, graph::kOpCount),
                         [](const auto& param) { return std::string(graph::info(static_cast<Op>(param.param)).name); });

/// Gradients of sum(result) with respect to the leaves named.
ref::Values gradients_of(Case c, const std::vector<std::string>& names) {
  Builder b(c.graph);
  std::vector<int64_t> axes;
  for (size_t k = 0; k < b.type(c.result).rank(); ++k) axes.push_back(static_cast<int64_t>(k));
  const Value loss = b.reduce_sum(c.result, axes);
  std::vector<Value> wrt;
  for (const std::string& name : names) wrt.push_back(*c.graph.find(Op::input, name));
  const std::vector<Value> g = gradient(c.graph, loss, wrt);
  for (size_t k = 0; k < g.size(); ++k) c.graph.outputs.push_back({names[k], g[k]});
  return ref::evaluate(c.graph, c.leaves, c.symbols, c.seed);
}

TEST(VjpTies, MaximumGivesEachOfTwoEqualOperandsHalf) {
  Case c;
  const Value x = float_leaf(c, "x", {3}, {1, 2, 3}), y = float_leaf(c, "y", {3}, {1, 5, -3});
  c.result = Builder(c.graph).maximum(x, y);
  const ref::Values g = gradients_of(c, {"x", "y"});
  EXPECT_THAT(g.at("x"), ::testing::ElementsAre(0.5, 0, 1));
  EXPECT_THAT(g.at("y"), ::testing::ElementsAre(0.5, 1, 0));
}

TEST(VjpTies, ReduceMaxSharesAmongEqualElements) {
  Case c;
  c.result = Builder(c.graph).reduce_max(float_leaf(c, "x", {2, 4}, {7, 1, 7, 7, 0, 2, 1, -1}), {1});
  const ref::Values g = gradients_of(c, {"x"});
  const double third = 1.0 / 3;
  EXPECT_THAT(g.at("x"), ::testing::ElementsAre(third, 0, third, third, 0, 1, 0, 0));
}

TEST(VjpIgnored, RowsWithoutALabelHaveNoGradient) {
  const ref::Values g = gradients_of(cross_entropy(0.1), {"logits"});
  EXPECT_THAT(std::vector<double>(g.at("logits").begin() + 4, g.at("logits").begin() + 8), ::testing::Each(0.0));
  EXPECT_NE(g.at("logits")[0], 0.0);
}

}  // namespace
}  // namespace muster::autodiff::testing
