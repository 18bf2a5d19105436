// What a model is: read from and written to a Hugging Face config.json. The file decides; where it is silent the defaults are those of
// Transformers' config classes. Weights are in weights.h, the graph in classifier.h.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::models {

/// Which names config.json and the weights use, and which head there is. xlm-roberta and camembert are roberta.
enum class Family { bert, roberta, distilbert };
enum class Activation { gelu, gelu_tanh, relu };
/// single_label: softmax over the labels. The other two can be run (logits) but not trained.
enum class ProblemType { single_label, multi_label, regression };

/// What stands on the encoder. masked_lm: a word for each masked position; pretraining: that and whether the second segment follows the
/// first.
enum class Head { classification, masked_lm, pretraining };

/// Above it a dropout would leave next to nothing, and its scale grow without bound.
inline constexpr double kMaxDropout = 0.99;

struct ModelConfig {
  Family family = Family::bert;
  std::string model_type = "bert";  // as in the file: bert, roberta, xlm-roberta, camembert, distilbert
  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t intermediate_size = 3072;
  int64_t max_position_embeddings = 512;  // rows of the position table
  int64_t type_vocab_size = 2;            // 0: the model has no token types (distilbert)
  int64_t pad_token_id = 0;
  Activation activation = Activation::gelu;
  double hidden_dropout = 0.1;
  double attention_dropout = 0.1;
  double classifier_dropout = 0.1;
  double layer_norm_eps = 1e-12;
  double initializer_range = 0.02;
  Head head = Head::classification;  // by the first of "architectures": *ForMaskedLM, *ForPreTraining, else classification
  ProblemType problem_type = ProblemType::single_label;
  std::vector<std::string> labels{"LABEL_0", "LABEL_1"};  // id2label in the order of the logits
  std::string json;                                       // the file as it was read, so that keys we do not know survive; empty: made here

  [[nodiscard]] int64_t num_labels() const { return static_cast<int64_t>(labels.size()); }
  [[nodiscard]] int64_t head_size() const { return hidden_size / heads; }
  [[nodiscard]] bool has_token_types() const { return type_vocab_size > 0; }
  /// Row of the position table for a sequence's first token: RoBERTa starts after the padding row.
  [[nodiscard]] int64_t position_offset() const { return family == Family::roberta ? pad_token_id + 1 : 0; }
  /// Longest sequence the position table allows, special tokens counted.
  [[nodiscard]] int64_t max_tokens() const { return max_position_embeddings - position_offset(); }
  /// Number of a label, or -1.
  [[nodiscard]] int64_t label_id(std::string_view label) const;
};

/// Reads folder/config.json. Throws Error(not_found|io|corrupt|invalid_argument|unsupported) that names the file and the key.
ModelConfig read_config(const std::string& folder);
/// Same from the text of a config.json; `path` is for messages.
ModelConfig parse_config(std::string_view text, const std::string& path);

/// The config of a model of single-label classification with these labels. Throws Error(invalid_argument) on fewer than two labels, an
/// empty one or one given twice.
void set_labels(ModelConfig& config, std::vector<std::string> labels);

/// config.json as Transformers reads it: config.json() with id2label, label2id, architectures, problem_type and dtype (float32) rewritten.
/// A config made here is written in full.
std::string to_json(const ModelConfig& config);
/// Writes folder/config.json atomically. Throws Error(io).
void write_config(const std::string& folder, const ModelConfig& config);

/// For training from scratch: tiny (2 x 128), minilm (6 x 384), bert-base, bert-large, roberta-base, distilbert-base.
/// Throws Error(usage) that lists the names.
ModelConfig named_config(std::string_view name);

/// "BertForSequenceClassification", "RobertaForMaskedLM" and their kin.
std::string architecture_of(const ModelConfig& config);
/// "bert", "roberta" or "distilbert": prefix of the encoder's tensor names.
std::string_view prefix_of(Family family);
/// As config.json has it: "single_label_classification", ...
std::string_view name_of(ProblemType type);

}  // namespace muster::models
