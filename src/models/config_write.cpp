// Writing config.json, and the configs that are made here. Reading is in config.cpp.
#include <nlohmann/json.hpp>

#include <set>

#include "core/error.h"
#include "models/config.h"
#include "storage/file.h"

namespace muster::models {
namespace {

using Json = nlohmann::ordered_json;  // keeps the keys in the order of the file

const char* name_of(Activation activation) {
  switch (activation) {
    case Activation::gelu: return "gelu";
    case Activation::gelu_tanh: return "gelu_new";
    case Activation::relu: return "relu";
  }
  return "?";
}

Json made_here(const ModelConfig& c) {
  if (c.family == Family::distilbert)
    return {{"activation", name_of(c.activation)},
            {"attention_dropout", c.attention_dropout},
            {"dim", c.hidden_size},
            {"dropout", c.hidden_dropout},
            {"hidden_dim", c.intermediate_size},
            {"initializer_range", c.initializer_range},
            {"max_position_embeddings", c.max_position_embeddings},
            {"model_type", c.model_type},
            {"n_heads", c.heads},
            {"n_layers", c.layers},
            {"pad_token_id", c.pad_token_id},
            {"seq_classif_dropout", c.classifier_dropout},
            {"vocab_size", c.vocab_size}};
  Json json{{"attention_probs_dropout_prob", c.attention_dropout},
            {"classifier_dropout", c.classifier_dropout},
            {"hidden_act", name_of(c.activation)},
            {"hidden_dropout_prob", c.hidden_dropout},
            {"hidden_size", c.hidden_size},
            {"initializer_range", c.initializer_range},
            {"intermediate_size", c.intermediate_size},
            {"layer_norm_eps", c.layer_norm_eps},
            {"max_position_embeddings", c.max_position_embeddings},
            {"model_type", c.model_type},
            {"num_attention_heads", c.heads},
            {"num_hidden_layers", c.layers},
            {"pad_token_id", c.pad_token_id},
            {"type_vocab_size", c.type_vocab_size},
            {"vocab_size", c.vocab_size}};
  if (c.family == Family::roberta) json["bos_token_id"] = 0, json["eos_token_id"] = 2;
  return json;
}

void rewrite(Json& json, const ModelConfig& c) {
  json["architectures"] = Json::array({architecture_of(c)});
  // Transformers renamed torch_dtype to dtype and reads both; older versions know only the first.
  if (json.contains("dtype")) json["dtype"] = "float32";
  if (json.contains("torch_dtype") || !json.contains("dtype")) json["torch_dtype"] = "float32";
  if (c.head != Head::classification) return;
  Json id2label = Json::object(), label2id = Json::object();
  for (size_t i = 0; i < c.labels.size(); ++i) {
    id2label[std::to_string(i)] = c.labels[i];
    label2id[c.labels[i]] = i;
  }
  json["id2label"] = std::move(id2label);
  json["label2id"] = std::move(label2id);
  for (const char* key : {"num_labels", "_num_labels"})
    if (json.contains(key)) json[key] = c.num_labels();
  json["problem_type"] = name_of(c.problem_type);
}

}  // namespace

void set_labels(ModelConfig& config, std::vector<std::string> labels) {
  if (labels.size() < 2)
    throw Error(ErrorKind::invalid_argument, "classification needs at least two labels, but there are {}", labels.size());
  std::set<std::string_view> seen;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].empty()) throw Error(ErrorKind::invalid_argument, "label {} has an empty name", i);
    if (!seen.insert(labels[i]).second) throw Error(ErrorKind::invalid_argument, "label \"{}\" is given twice", labels[i]);
  }
  config.labels = std::move(labels);
  config.head = Head::classification;
  config.problem_type = ProblemType::single_label;
}

std::string to_json(const ModelConfig& config) {
  try {
    Json json = config.json.empty() ? made_here(config) : Json::parse(config.json);
    rewrite(json, config);
    return json.dump(2) + "\n";
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::invalid_argument, "cannot write config.json: {}", e.what());
  }
}

void write_config(const std::string& folder, const ModelConfig& config) {
  storage::write_file_atomic(folder + "/config.json", to_json(config), "model config");
}

ModelConfig named_config(std::string_view name) {
  ModelConfig c;  // bert-base
  if (name == "tiny") {
    c.hidden_size = 128, c.layers = 2, c.heads = 2, c.intermediate_size = 512;
  } else if (name == "minilm") {
    c.hidden_size = 384, c.layers = 6, c.heads = 12, c.intermediate_size = 1536;
  } else if (name == "roberta-base") {
    c.family = Family::roberta, c.model_type = "roberta";
    c.vocab_size = 50265, c.max_position_embeddings = 514, c.type_vocab_size = 1, c.pad_token_id = 1, c.layer_norm_eps = 1e-5;
  } else if (name == "distilbert-base") {
    c.family = Family::distilbert, c.model_type = "distilbert";
    c.layers = 6, c.type_vocab_size = 0, c.classifier_dropout = 0.2;
  } else if (name == "bert-large") {
    c.hidden_size = 1024, c.layers = 24, c.heads = 16, c.intermediate_size = 4096;
  } else if (name != "bert-base") {
    throw Error(ErrorKind::usage,
                "no model config named {}; there are tiny, minilm, bert-base, bert-large, roberta-base and distilbert-base", name);
  }
  return c;
}

std::string architecture_of(const ModelConfig& config) {
  std::string_view stem = "Bert";
  if (config.family == Family::distilbert) stem = "DistilBert";
  if (config.family == Family::roberta) stem = "Roberta";
  if (config.model_type == "xlm-roberta") stem = "XLMRoberta";
  if (config.model_type == "camembert") stem = "Camembert";
  switch (config.head) {
    case Head::classification: break;
    case Head::masked_lm: return std::string(stem) + "ForMaskedLM";
    case Head::pretraining: return std::string(stem) + "ForPreTraining";
  }
  return std::string(stem) + "ForSequenceClassification";
}

std::string_view prefix_of(Family family) {
  switch (family) {
    case Family::bert: return "bert";
    case Family::roberta: return "roberta";
    case Family::distilbert: return "distilbert";
  }
  return "?";
}

std::string_view name_of(ProblemType type) {
  switch (type) {
    case ProblemType::single_label: return "single_label_classification";
    case ProblemType::multi_label: return "multi_label_classification";
    case ProblemType::regression: return "regression";
  }
  return "?";
}

}  // namespace muster::models
