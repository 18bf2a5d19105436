#include "models/pretrainer.h"

#include <algorithm>

#include "models/encoder.h"
#include "models/layers.h"

namespace muster::models {
namespace {

template <typename T>
Tensor copy_of(std::span<const T> values) {
  Tensor tensor(DTypeOf<T>::value, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<T>().begin());
  return tensor;
}

/// Words' logits [P, V] of hidden states [P, H]: dense, activation, norm, then the word table and a bias.
graph::Value word_logits(graph::Builder& b, const ModelConfig& config, graph::Value x) {
  x = dense(b, x, "mlm.dense", config.hidden_size);
  x = config.family == Family::roberta ? b.gelu(x) : activate(b, x, config.activation);
  x = norm(b, x, "mlm.norm", config.layer_norm_eps);
  const graph::Value table = *b.graph().find(graph::Op::parameter, "embeddings.word.weight");
  const graph::Value product = b.dot(x, table, false, true);
  return b.add(product, b.broadcast(b.parameter("mlm.bias", {config.vocab_size}), b.type(product).dims, {1}));
}

struct Loss {
  graph::Value sum, each;  // f32 [], f32 [R]
};
Loss weighted(graph::Builder& b, graph::Value logits, graph::Value labels, graph::Value weights) {
  const graph::Value each = b.softmax_cross_entropy(logits, labels, 0);
  return {b.reduce_sum(b.mul(each, weights), {0}), each};
}

}  // namespace

graph::Graph build_pretrainer(const ModelConfig& config, const PretrainerOptions& options) {
  if (config.head == Head::classification)
    throw Error(ErrorKind::invalid_argument, "{} has no head for masked language modelling", architecture_of(config));
  DropoutRates rates;
  if (options.training) rates = {options.dropout.value_or(config.hidden_dropout), options.dropout.value_or(config.attention_dropout), 0};
  graph::Graph graph;
  graph::Builder b(graph);
  const graph::Value hidden = encode(b, config, rates);
  const graph::Value logits = word_logits(b, config, b.gather(hidden, b.input("masked_rows", DType::i32, {graph::kPredictions})));
  graph::Value next{};
  const bool pairs = config.head == Head::pretraining;
  if (pairs) {
    const graph::Value first = b.gather(hidden, b.input("first_rows", DType::i32, {graph::kSequences}));
    next = dense(b, b.tanh(dense(b, first, "pooler", config.hidden_size)), "nsp", 2);
  }
  if (!options.loss) {
    b.output("logits", logits);
    if (pairs) b.output("next_logits", next);
    return graph;
  }
  const Loss words = weighted(b, logits, b.input("masked_labels", DType::i32, {graph::kPredictions}),
                              b.input("masked_weights", DType::f32, {graph::kPredictions}));
  graph::Value total = words.sum;
  if (pairs) {
    const Loss pair = weighted(b, next, b.input("next_labels", DType::i32, {graph::kSequences}),
                               b.input("next_weights", DType::f32, {graph::kSequences}));
    total = b.add(total, pair.sum);
    b.output("nsp_loss", pair.sum);
    b.output("next_logits", next);
  }
  b.output("loss", total);
  b.output("mlm_loss", words.sum);
  b.output("mlm_losses", words.each);
  b.output("mlm_lse", {words.each.node, 1});
  b.output("mlm_best", b.reduce_max(logits, {1}));
  return graph;
}

void add_masks(Inputs& inputs, const ModelConfig& config, std::span<const int32_t> rows, std::span<const int32_t> labels,
               std::span<const float> weights) {
  const auto ids = inputs.find("ids");
  MUSTER_ASSERT(ids != inputs.end());
  if (rows.size() != labels.size() || rows.size() != weights.size())
    throw Error(ErrorKind::invalid_argument, "the batch has {} masked positions, but {} labels and {} weights", rows.size(), labels.size(),
                weights.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= ids->second.elements())
      throw Error(ErrorKind::invalid_argument, "masked position {} is row {}, but the batch has {} tokens", i, rows[i],
                  ids->second.elements());
    if (labels[i] < 0 || labels[i] >= config.vocab_size)
      throw Error(ErrorKind::invalid_argument, "masked position {} has label {}, which is not below the model's vocab_size {}", i,
                  labels[i], config.vocab_size);
  }
  inputs.insert_or_assign("masked_rows", copy_of(rows));
  inputs.insert_or_assign("masked_labels", copy_of(labels));
  inputs.insert_or_assign("masked_weights", copy_of(weights));
}

void add_next(Inputs& inputs, std::span<const int32_t> labels, std::span<const float> weights) {
  const auto first_rows = inputs.find("first_rows");
  MUSTER_ASSERT(first_rows != inputs.end());
  if (static_cast<int64_t>(labels.size()) != first_rows->second.elements() || labels.size() != weights.size())
    throw Error(ErrorKind::invalid_argument, "the batch has {} sequences, but {} next-sentence labels and {} weights",
                first_rows->second.elements(), labels.size(), weights.size());
  for (const int32_t label : labels)
    if (label < 0 || label > 1) throw Error(ErrorKind::invalid_argument, "a next-sentence label is {}: it is 0 or 1", label);
  inputs.insert_or_assign("next_labels", copy_of(labels));
  inputs.insert_or_assign("next_weights", copy_of(weights));
}

}  // namespace muster::models
