#include "models/classifier.h"

#include "models/encoder.h"
#include "models/layers.h"

namespace muster::models {
namespace {

DropoutRates rates_of(const ModelConfig& config, const ClassifierOptions& options) {
  if (!options.training) return {};
  if (!options.dropout) return {config.hidden_dropout, config.attention_dropout, config.classifier_dropout};
  if (!(*options.dropout >= 0 && *options.dropout <= kMaxDropout))
    throw Error(ErrorKind::invalid_argument, "dropout {} is not in [0, {}]", *options.dropout, kMaxDropout);
  return {*options.dropout, *options.dropout, *options.dropout};
}

/// first [B, H]: the hidden state of each sequence's first token.
graph::Value head(graph::Builder& b, const ModelConfig& config, const DropoutRates& rates, graph::Value first) {
  const auto pooled = [&] { return dense(b, first, "head.dense", config.hidden_size); };
  const auto out = [&](graph::Value x) {
    return dense(b, b.dropout(x, rates.classifier, kHeadOutStream), "head.out", config.num_labels());
  };
  switch (config.family) {
    case Family::bert: return out(b.tanh(pooled()));
    case Family::roberta: first = b.dropout(first, rates.classifier, kHeadStream); return out(b.tanh(pooled()));
    case Family::distilbert: return out(activate(b, pooled(), Activation::relu));
  }
  throw Error(ErrorKind::internal, "[models] unknown family {}", static_cast<int>(config.family));
}

graph::Value loss_of(graph::Builder& b, const ModelConfig& config, const ClassifierOptions& options, graph::Value logits) {
  if (config.problem_type != ProblemType::single_label)
    throw Error(ErrorKind::unsupported,
                "problem_type {} has no loss in muster yet; only single_label_classification can be trained or evaluated with one",
                name_of(config.problem_type));
  if (config.num_labels() < 2)
    throw Error(ErrorKind::unsupported, "a model with one label is a regression, which has no loss in muster yet");
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
    throw Error(ErrorKind::invalid_argument, "label smoothing {} is not in [0, 1)", options.label_smoothing);
  const graph::Value labels = b.input("labels", DType::i32, {graph::kSequences});
  const graph::Value weights = b.input("sample_weights", DType::f32, {graph::kSequences});
  return b.reduce_sum(b.mul(b.softmax_cross_entropy(logits, labels, options.label_smoothing), weights), {0});
}

}  // namespace

graph::Graph build_classifier(const ModelConfig& config, const ClassifierOptions& options) {
  if (config.head != Head::classification)
    throw Error(ErrorKind::invalid_argument, "the model is a {}, not a classifier: run `muster train --task classification` from it first",
                architecture_of(config));
  const DropoutRates rates = rates_of(config, options);
  graph::Graph graph;
  graph::Builder b(graph);
  const graph::Value hidden = encode(b, config, rates);
  const graph::Value first = b.gather(hidden, b.input("first_rows", DType::i32, {graph::kSequences}));
  const graph::Value logits = head(b, config, rates, first);
  if (options.training || options.loss) {
    const graph::Value loss = loss_of(b, config, options, logits);
    b.output("loss", loss);
  }
  b.output("logits", logits);
  return graph;
}

}  // namespace muster::models
