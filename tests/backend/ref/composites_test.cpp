// Composites against PyTorch 2 in f64 (the numbers are its own output), and the fused ops against their parts. Their gradients are
// checked by finite differences in tests/autodiff.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backend/ref/support.h"
#include "core/dropout_mask.h"

namespace muster::ref::testing {
namespace {

using graph::Attrs;
using graph::Op;
using graph::Value;
using ::testing::DoubleNear;
using ::testing::Pointwise;

Value second(Value v, int32_t output = 1) { return {v.node, output}; }
auto near(const std::vector<double>& expected) { return Pointwise(DoubleNear(1e-12), expected); }

const graph::Dim kBorders{graph::Symbol::sequences, 1, 1};

TEST(LayerNorm, IsPyTorchs) {
  Program p;
  const Value x = p.leaf({2, 3}, {1, 2, 4, -1, 0.5, 3}), gamma = p.leaf({3}, {1, 2, 0.5}), beta = p.leaf({3}, {0, 0.1, -1});
  const Value y = p.b.layer_norm(x, gamma, beta, 1e-3);
  EXPECT_THAT(p.run(y), near({-1.0687015116389473, -0.4343507558194738, -0.33206155522565817, -1.1109637631749494, -0.30398682297270885,
                              -0.343521412669348}));
  EXPECT_THAT(p.run(second(y)), near({2.3333333333333335, 0.8333333333333334}));
  EXPECT_THAT(p.run(second(y, 2)), near({0.8015261337292103, 0.6059802344590633}));
}

TEST(CrossEntropy, IsPyTorchs) {
  Program p;
  const Value logits = p.leaf({3, 3}, {1, 2, 4, -1, 0.5, 3, 0, 0, 0}), labels = p.leaf({3}, {2, 0, -100}, DType::i32);
  const Value plain = p.b.softmax_cross_entropy(logits, labels, 0), smooth = p.b.softmax_cross_entropy(logits, labels, 0.2);
  EXPECT_THAT(p.run(plain), near({0.16984601955628567, 4.095674329414383, 0}));
  EXPECT_THAT(p.run(smooth), near({0.503179352889619, 3.729007662747716, 0}));
  EXPECT_THAT(p.run(second(plain)), near({4.169846019556286, 3.0956743294143823, 1.0986122886681098}));
}

TEST(CrossEntropy, IsFiniteForLargeLogits) {
  Program p;
  const Value logits = p.leaf({1, 2}, {1000, -1000}), labels = p.leaf({1}, {1}, DType::i32);
  EXPECT_THAT(p.run(p.b.softmax_cross_entropy(logits, labels, 0)), near({2000}));
}

TEST(CrossEntropy, NamesALabelBeyondTheClasses) {
  Program p;
  const Value logits = p.leaf({2, 3}, {1, 2, 3, 4, 5, 6}), labels = p.leaf({2}, {0, 3}, DType::i32);
  EXPECT_EQ(message_of([&] { p.run(p.b.softmax_cross_entropy(logits, labels, 0)); }),
            "[softmax_cross_entropy] label 3 of row 1 is outside 3 classes");
}

/// Numbers that look random: (7 i mod 11 - 5) / 4.
std::vector<double> scattered(int64_t n) {
  std::vector<double> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = static_cast<double>(i * 7 % 11 - 5) / 4;
  return values;
}

TEST(Attention, IsPyTorchsForEachSequenceAlone) {
  Program p;
  p.symbols = {1, 3, 2, 0};
  const Value qkv = p.leaf({graph::kTokens, 12}, scattered(36)), cu_seqlens = p.leaf({kBorders}, {0, 2, 3}, DType::i32);
  const Value out = p.b.attention(qkv, cu_seqlens, 2, 0, 0);
  EXPECT_THAT(p.run(out), near({0.43143388715142844, -0.06796222122938768, -0.6204399040303585, -0.6017301679468725, -0.5197511555125982,
                                0.47557208886434177, -0.507183315226807, -0.7999291983530876, -0.25, -1.25, 0.5, -0.5}));
  EXPECT_THAT(p.run(second(out)), near({1.2174051257177323, 0.10918057326624503, 0.6743482377983137, 1.1811894642395855,
                                        -0.35355339059327373, -0.5745242597140698}));
}

/// With v the identity, the result is the row of dropped probabilities itself.
TEST(Attention, DropoutScalesProbabilitiesByTheSharedMask) {
  Program p;
  p.symbols = {1, 4, 1, 0};
  std::vector<double> qkv = scattered(48);
  for (size_t t = 0; t < 4; ++t)
    for (size_t c = 0; c < 4; ++c) qkv[t * 12 + 8 + c] = t == c ? 1 : 0;
  const Value x = p.leaf({graph::kTokens, 12}, qkv), cu_seqlens = p.leaf({kBorders}, {0, 4}, DType::i32);
  const std::vector<double> whole = p.run(p.b.attention(x, cu_seqlens, 1, 0, 0), 5),
                            kept = p.run(p.b.attention(x, cu_seqlens, 1, 0.5, 9), 5);
  const DropoutRate rate = dropout_rate(0.5);
  for (int64_t t = 0; t < 4; ++t)
    for (int64_t j = 0; j < 4; ++j) {
      const auto i = static_cast<size_t>(t * 4 + j);
      EXPECT_NEAR(kept[i], whole[i] * dropout_factor(rate, 5, 9, attention_dropout_index(t, 1, 0, j)), 1e-12) << t << " " << j;
    }
  EXPECT_NE(kept, whole);
}

TEST(Attention, AllowsAnEmptySequence) {
  Program p;
  p.symbols = {1, 1, 3, 0};
  const Value qkv = p.leaf({graph::kTokens, 3}, {1, 2, 3}), cu_seqlens = p.leaf({kBorders}, {0, 0, 1, 1}, DType::i32);
  EXPECT_THAT(p.run(p.b.attention(qkv, cu_seqlens, 1, 0, 0)), near({3}));
}

TEST(Attention, RefusesBordersThatDoNotRiseFromZeroToTheTokens) {
  for (const auto& [borders, message] : std::vector<std::pair<std::vector<double>, std::string>>{
           {{1, 2, 3}, "[attention] cu_seqlens[0] is 1: it must start at 0 and never fall"},
           {{0, 2, 3}, "[attention] cu_seqlens ends at 3, qkv has 4 tokens"},
           {{0, 3, 2}, "[attention] cu_seqlens[2] is 2: it must start at 0 and never fall"},
           {{0, 2, 5}, "[attention] cu_seqlens ends at 5, qkv has 4 tokens"}}) {
    Program p;
    p.symbols = {1, 4, 2, 0};
    const Value qkv = p.leaf({graph::kTokens, 3}, scattered(12)), cu_seqlens = p.leaf({kBorders}, borders, DType::i32);
    EXPECT_EQ(message_of([&] { p.run(p.b.attention(qkv, cu_seqlens, 1, 0, 0)); }), message);
  }
}

/// Two steps of torch.optim.AdamW(lr=0.1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.05).
TEST(AdamW, IsPyTorchs) {
  std::vector<double> parameter{1, -2, 0.5}, m(3, 0.0), v(3, 0.0);
  const std::vector<std::vector<double>> gradients{{0.5, -1, 2}, {-0.25, 3, 0}};
  for (size_t step = 1; step <= 2; ++step) {
    Program p;
    Attrs attrs;
    attrs.beta1 = 0.8, attrs.beta2 = 0.9, attrs.value = 1e-3, attrs.weight_decay = 0.05;
    std::vector<double> halved = gradients[step - 1];
    for (double& g : halved) g /= 2;  // undone by the gradient's scale
    const auto t = static_cast<double>(step);
    const Value in[] = {p.leaf({3}, parameter), p.leaf({3}, halved), p.leaf({3}, m), p.leaf({3}, v),
                        p.leaf({4}, {0.1, 1 - std::pow(0.8, t), 1 - std::pow(0.9, t), 2})};
    const Value update = p.b.emit(Op::adamw, {in[0], in[1], in[2], in[3], in[4]}, attrs);
    parameter = p.run(update), m = p.run(second(update)), v = p.run(second(update, 2));
    if (step == 1) {
      EXPECT_THAT(parameter, near({0.8951996007984032, -1.8900999000999001, 0.39754997501249373}));
    }
  }
  EXPECT_THAT(parameter, near({0.8693557144804037, -1.9341697773949422, 0.3310328240154472}));
  EXPECT_THAT(m, near({0.03, 0.44, 0.32}));
  EXPECT_THAT(v, near({0.02875, 0.99, 0.36}));
}

TEST(Region, IsItsBody) {
  Program p;
  const Value x = p.leaf({4, 3}, scattered(12)), residual = p.leaf({4, 3}, {1, 2, 3, 0, 1, -1, 2, 2, 1, 5, 0, -2});
  const Value gamma = p.leaf({3}, {1, 2, 0.5}), beta = p.leaf({3}, {0, 0.1, -1});
  auto body = std::make_shared<graph::Graph>();
  graph::Builder b(*body);
  std::vector<Value> in;
  for (const Value v : {x, residual, gamma, beta}) in.push_back(b.input(std::to_string(in.size()), DType::f32, p.b.type(v).dims));
  const Value inner = b.add(in[1], b.dropout(in[0], 0.4, 2)), normed = b.layer_norm(inner, in[2], in[3], 1e-5);
  b.output("0", normed);
  b.output("1", inner);
  b.output("2", b.reduce_sum(normed, {0}));
  Attrs attrs;
  attrs.body = body;
  const Value region = p.b.emit(Op::region, {x, residual, gamma, beta}, attrs);
  const Value sum = p.b.add(residual, p.b.dropout(x, 0.4, 2)), y = p.b.layer_norm(sum, gamma, beta, 1e-5);
  EXPECT_THAT(p.run(region, 3), near(p.run(y, 3)));
  EXPECT_THAT(p.run(second(region), 3), near(p.run(sum, 3)));
  EXPECT_THAT(p.run(second(region, 2), 3), near(p.run(p.b.reduce_sum(y, {0}), 3)));
}

}  // namespace
}  // namespace muster::ref::testing
