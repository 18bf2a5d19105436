// Reading config.json. Writing it is in config_write.cpp.
#include "models/config.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/log.h"
#include "storage/file.h"

namespace muster::models {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxConfigBytes = 16u << 20;
constexpr int kMaxDepth = 64;
constexpr int64_t kMaxLabels = 100'000;
// Attention dropout counts positions in 16 bits (core/dropout_mask.h); the other sizes are far above any encoder's.
constexpr int64_t kMaxPositions = 1 << 16, kMaxVocab = 1 << 24, kMaxWidth = 1 << 16, kMaxLayers = 1024;

/// Typed access to the keys of one file; null counts as absent.
class Keys {
 public:
  Keys(const Json& json, const std::string& path) : json_(json), path_(path) {}

  template <typename... Args>
  [[noreturn]] void fail(ErrorKind kind, const char* key, fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(kind, "{}: {} {}", path_, key, fmt::format(format, std::forward<Args>(args)...));
  }
  [[nodiscard]] const Json* find(const char* key) const {
    const auto it = json_.find(key);
    return it == json_.end() || it->is_null() ? nullptr : &*it;
  }
  [[nodiscard]] int64_t integer(const char* key, int64_t fallback, int64_t min, int64_t max) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_number_integer()) fail(ErrorKind::invalid_argument, key, "must be an integer, but is {}", shown(*value));
    const bool huge = value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
    if (huge || value->get<int64_t>() < min || value->get<int64_t>() > max)
      fail(ErrorKind::invalid_argument, key, "must be between {} and {}, but is {}", min, max, shown(*value));
    return value->get<int64_t>();
  }
  [[nodiscard]] double number(const char* key, double fallback, double min, double max) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_number()) fail(ErrorKind::invalid_argument, key, "must be a number, but is {}", shown(*value));
    const auto number = value->get<double>();
    if (!(number >= min && number <= max))
      fail(ErrorKind::invalid_argument, key, "must be between {} and {}, but is {}", min, max, shown(*value));
    return number;
  }
  [[nodiscard]] std::string text(const char* key, const std::string& fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_string()) fail(ErrorKind::invalid_argument, key, "must be a string, but is {}", shown(*value));
    return value->get<std::string>();
  }
  [[nodiscard]] bool flag(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) fail(ErrorKind::invalid_argument, key, "must be true or false, but is {}", shown(*value));
    return value->get<bool>();
  }
  /// A value for a message: bounded, one line.
  static std::string shown(const Json& value) {
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > 60) text = text.substr(0, 60) + "...";
    return text;
  }

 private:
  const Json& json_;
  const std::string& path_;
};

Json parse(std::string_view text, const std::string& path) {
  const auto bounded = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) throw Error(ErrorKind::corrupt, "{}: nested deeper than {} levels", path, kMaxDepth);
    return true;
  };
  try {
    Json json = Json::parse(text, bounded);
    if (!json.is_object()) throw Error(ErrorKind::corrupt, "{}: not a JSON object", path);
    return json;
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::corrupt, "{}: not valid JSON: {}", path, e.what());
  }
}

void read_type(const Keys& keys, ModelConfig& c) {
  c.model_type = keys.text("model_type", "");
  if (c.model_type.empty()) keys.fail(ErrorKind::invalid_argument, "model_type", "is missing");
  if (c.model_type == "bert") {
    c.family = Family::bert;
  } else if (c.model_type == "distilbert") {
    c.family = Family::distilbert;
  } else if (c.model_type == "roberta" || c.model_type == "xlm-roberta" || c.model_type == "camembert") {
    c.family = Family::roberta;
  } else {
    keys.fail(ErrorKind::unsupported, "model_type", "{} is not supported; muster runs bert, roberta, xlm-roberta, camembert and distilbert",
              Keys::shown(Json(c.model_type)));
  }
  for (const char* key : {"is_decoder", "add_cross_attention"})
    if (keys.flag(key)) keys.fail(ErrorKind::unsupported, key, "is true; muster runs encoders only");
  if (keys.text("position_embedding_type", "absolute") != "absolute")
    keys.fail(ErrorKind::unsupported, "position_embedding_type", "{} is not supported, only absolute",
              Keys::shown(*keys.find("position_embedding_type")));
  if (keys.find("quantization_config") != nullptr)
    keys.fail(ErrorKind::unsupported, "quantization_config",
              "is there: quantised weights are not supported; use the model in F32, F16 or BF16");
  if (const Json* pruned = keys.find("pruned_heads"); pruned != nullptr && !pruned->empty())
    keys.fail(ErrorKind::unsupported, "pruned_heads", "is not empty: pruned models are not supported");
}

void read_sizes(const Keys& keys, ModelConfig& c) {
  const bool distil = c.family == Family::distilbert, roberta = c.family == Family::roberta;
  c.vocab_size = keys.integer("vocab_size", c.model_type == "roberta" ? 50265 : 30522, 1, kMaxVocab);
  const char* width = distil ? "dim" : "hidden_size";
  const char* heads = distil ? "n_heads" : "num_attention_heads";
  c.hidden_size = keys.integer(width, 768, 1, kMaxWidth);
  c.layers = keys.integer(distil ? "n_layers" : "num_hidden_layers", distil ? 6 : 12, 1, kMaxLayers);
  c.heads = keys.integer(heads, 12, 1, kMaxWidth);
  if (c.hidden_size % c.heads != 0)
    keys.fail(ErrorKind::invalid_argument, heads, "{} does not divide {} {}", c.heads, width, c.hidden_size);
  c.intermediate_size = keys.integer(distil ? "hidden_dim" : "intermediate_size", 3072, 1, 4 * kMaxWidth);
  c.max_position_embeddings = keys.integer("max_position_embeddings", 512, 1, kMaxPositions);
  c.type_vocab_size = distil ? 0 : keys.integer("type_vocab_size", 2, 0, kMaxWidth);
  c.pad_token_id = keys.integer("pad_token_id", roberta ? 1 : 0, 0, c.vocab_size - 1);
  if (c.max_tokens() < 1)
    keys.fail(ErrorKind::invalid_argument, "max_position_embeddings", "{} leaves no position after pad_token_id {}",
              c.max_position_embeddings, c.pad_token_id);
}

void read_numerics(const Keys& keys, ModelConfig& c) {
  const bool distil = c.family == Family::distilbert;
  const char* act_key = distil ? "activation" : "hidden_act";
  const std::string act = keys.text(act_key, "gelu");
  if (act == "gelu") {
    c.activation = Activation::gelu;
  } else if (act == "gelu_new" || act == "gelu_pytorch_tanh") {
    c.activation = Activation::gelu_tanh;
  } else if (act == "relu") {
    c.activation = Activation::relu;
  } else {
    keys.fail(ErrorKind::unsupported, act_key, "{} is not supported; muster has gelu, gelu_new, gelu_pytorch_tanh and relu",
              Keys::shown(Json(act)));
  }
  c.hidden_dropout = keys.number(distil ? "dropout" : "hidden_dropout_prob", 0.1, 0, kMaxDropout);
  c.attention_dropout = keys.number(distil ? "attention_dropout" : "attention_probs_dropout_prob", 0.1, 0, kMaxDropout);
  c.classifier_dropout =
      keys.number(distil ? "seq_classif_dropout" : "classifier_dropout", distil ? 0.2 : c.hidden_dropout, 0, kMaxDropout);
  c.layer_norm_eps = distil ? 1e-12 : keys.number("layer_norm_eps", 1e-12, 0, 1);  // DistilBERT has it fixed in its code
  c.initializer_range = keys.number("initializer_range", 0.02, 0, 100);
}

std::vector<std::string> numbered_labels(int64_t count) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back("LABEL_" + std::to_string(i));
  return labels;
}

std::vector<std::string> read_id2label(const Keys& keys, const Json& map) {
  constexpr const char* kKey = "id2label";
  if (!map.is_object() || map.empty() || map.size() > static_cast<size_t>(kMaxLabels))
    keys.fail(ErrorKind::invalid_argument, kKey, "must map 1 to {} label numbers to names, but is {}", kMaxLabels, Keys::shown(map));
  std::vector<std::string> labels;
  for (size_t i = 0; i < map.size(); ++i) {
    const auto it = map.find(std::to_string(i));
    if (it == map.end()) keys.fail(ErrorKind::invalid_argument, kKey, "has {} entries, but none for label {}", map.size(), i);
    if (!it->is_string()) keys.fail(ErrorKind::invalid_argument, kKey, "must map to strings, but label {} is {}", i, Keys::shown(*it));
    labels.push_back(it->get<std::string>());
  }
  std::set<std::string_view> seen;
  for (const std::string& label : labels)
    if (!seen.insert(label).second) keys.fail(ErrorKind::invalid_argument, kKey, "has label {} twice", Keys::shown(Json(label)));
  return labels;
}

void read_head(const Keys& keys, ModelConfig& c) {
  const Json* list = keys.find("architectures");
  if (list == nullptr || !list->is_array() || list->empty() || !list->front().is_string()) return;
  const auto name = list->front().get<std::string>();
  if (name.ends_with("ForMaskedLM")) c.head = Head::masked_lm;
  if (name.ends_with("ForPreTraining")) c.head = Head::pretraining;
}

void read_task(const Keys& keys, ModelConfig& c) {
  const int64_t count = keys.integer("num_labels", 2, 1, kMaxLabels);
  if (const Json* map = keys.find("id2label")) {
    c.labels = read_id2label(keys, *map);
    if (keys.find("num_labels") != nullptr && count != c.num_labels())  // Transformers goes by id2label too
      log_warning("config.json: num_labels is {}, but id2label has {} labels, which counts", count, c.num_labels());
  } else {
    c.labels = numbered_labels(count);
  }
  const std::string type = keys.text("problem_type", c.num_labels() == 1 ? "regression" : "single_label_classification");
  for (const ProblemType known : {ProblemType::single_label, ProblemType::multi_label, ProblemType::regression}) {
    if (type != name_of(known)) continue;
    c.problem_type = known;
    return;
  }
  keys.fail(ErrorKind::invalid_argument, "problem_type",
            "{} is unknown; it is single_label_classification, multi_label_classification or regression", Keys::shown(Json(type)));
}

}  // namespace

int64_t ModelConfig::label_id(std::string_view label) const {
  const auto it = std::find(labels.begin(), labels.end(), label);
  return it == labels.end() ? -1 : it - labels.begin();
}

ModelConfig parse_config(std::string_view text, const std::string& path) {
  const Json json = parse(text, path);
  const Keys keys(json, path);
  ModelConfig config;
  read_type(keys, config);
  read_sizes(keys, config);
  read_numerics(keys, config);
  read_head(keys, config);
  read_task(keys, config);
  config.json = text;
  return config;
}

ModelConfig read_config(const std::string& folder) {
  const std::string path = folder + "/config.json";
  return parse_config(storage::read_file(path, kMaxConfigBytes), path);
}

}  // namespace muster::models
