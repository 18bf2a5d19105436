#include "autodiff/encoder.h"

namespace muster::autodiff::testing {

using graph::Builder;
using graph::Graph;
using graph::kSequences;
using graph::kTokens;
using graph::Value;

namespace {

/// The builder, the prefix of the parameters' names and the number of the next dropout.
struct Build {
  Builder b;
  double rate;
  uint32_t stream = 0;

  Value drop(Value x) { return b.dropout(x, rate, ++stream); }
  Value linear(const std::string& name, Value x, int64_t in, int64_t out) {
    const Value weight = b.parameter(name + ".weight", {out, in}), bias = b.parameter(name + ".bias", {out});
    return b.linear(x, weight, bias);
  }
  Value norm(const std::string& name, Value x, int64_t width) {
    const Value gamma = b.parameter(name + ".weight", {width}), beta = b.parameter(name + ".bias", {width});
    return b.layer_norm(x, gamma, beta, 1e-5);
  }
};

}  // namespace

Value build_encoder(Graph& graph, const EncoderSizes& s, double dropout) {
  Build m{Builder(graph), dropout};
  const Value ids = m.b.input("ids", DType::i32, {kTokens}), positions = m.b.input("positions", DType::i32, {kTokens});
  const Value cu_seqlens = m.b.input("cu_seqlens", DType::i32, {graph::Dim{graph::Symbol::sequences, 1, 1}});
  const Value firsts = m.b.input("firsts", DType::i32, {kSequences}), labels = m.b.input("labels", DType::i32, {kSequences});

  const Value words = m.b.gather(m.b.parameter("words", {s.vocabulary, s.hidden}), ids);
  const Value places = m.b.gather(m.b.parameter("places", {s.positions, s.hidden}), positions);
  Value x = m.drop(m.norm("embedding_norm", m.b.add(words, places), s.hidden));
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    const std::string name = std::to_string(layer);
    const Value qkv = m.linear(name + ".qkv", x, s.hidden, 3 * s.hidden);
    const Value context = m.b.attention(qkv, cu_seqlens, static_cast<int32_t>(s.heads), m.rate, ++m.stream);
    const Value attended = m.drop(m.linear(name + ".out", context, s.hidden, s.hidden));
    x = m.norm(name + ".attention_norm", m.b.add(x, attended), s.hidden);
    const Value inner = m.b.gelu(m.linear(name + ".up", x, s.hidden, s.intermediate));
    x = m.norm(name + ".output_norm", m.b.add(x, m.drop(m.linear(name + ".down", inner, s.intermediate, s.hidden))), s.hidden);
  }
  const Value pooled = m.b.tanh(m.linear("pooler", m.b.gather(x, firsts), s.hidden, s.hidden));
  const Value logits = m.linear("classifier", m.drop(pooled), s.hidden, s.classes);
  return m.b.reduce_sum(m.b.softmax_cross_entropy(logits, labels, 0.1), {0});
}

}  // namespace muster::autodiff::testing
