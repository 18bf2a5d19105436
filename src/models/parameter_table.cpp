// Which tensors of a Hugging Face file make which parameter of the engine: one row for each parameter of each family.
// Names: facts of Transformers' modeling_{bert,roberta,distilbert}.py; Linear weights are [out, in].
#include "models/weights.h"

namespace muster::models {
namespace {

/// Names of one family's tensors, relative to its prefix where they start with "$".
struct Names {
  const char *layer, *query, *key, *value, *attention_out, *attention_norm, *up, *down, *output_norm, *head_dense, *head_out;
  const char *mlm_dense, *mlm_norm, *mlm_bias;
};
const Names& names_of(Family family) {
  static constexpr Names kBert{"$encoder.layer.",
                               "attention.self.query",
                               "attention.self.key",
                               "attention.self.value",
                               "attention.output.dense",
                               "attention.output.LayerNorm",
                               "intermediate.dense",
                               "output.dense",
                               "output.LayerNorm",
                               "$pooler.dense",
                               "classifier",
                               "cls.predictions.transform.dense",
                               "cls.predictions.transform.LayerNorm",
                               "cls.predictions.bias"};
  static constexpr Names kRoberta{"$encoder.layer.",        "attention.self.query",
                                  "attention.self.key",     "attention.self.value",
                                  "attention.output.dense", "attention.output.LayerNorm",
                                  "intermediate.dense",     "output.dense",
                                  "output.LayerNorm",       "classifier.dense",
                                  "classifier.out_proj",    "lm_head.dense",
                                  "lm_head.layer_norm",     "lm_head.bias"};
  static constexpr Names kDistil{"$transformer.layer.", "attention.q_lin", "attention.k_lin",  "attention.v_lin",     "attention.out_lin",
                                 "sa_layer_norm",       "ffn.lin1",        "ffn.lin2",         "output_layer_norm",   "pre_classifier",
                                 "classifier",          "vocab_transform", "vocab_layer_norm", "vocab_projector.bias"};
  switch (family) {
    case Family::bert: return kBert;
    case Family::roberta: return kRoberta;
    case Family::distilbert: return kDistil;
  }
  throw Error(ErrorKind::internal, "[models] unknown family {}", static_cast<int>(family));
}

class Table {
 public:
  explicit Table(Family family) : prefix_(std::string(prefix_of(family)) + ".") {}

  void add(const std::string& name, Shape shape, const std::vector<std::string>& tensors, bool head = false) {
    ParameterInfo row{name, std::move(shape), {}, head};
    for (const std::string& tensor : tensors) row.tensors.push_back(tensor[0] == '$' ? prefix_ + tensor.substr(1) : tensor);
    rows.push_back(std::move(row));
  }
  /// Weight [out, in] and bias [out]; stacked when there are several tensors.
  void add_dense(const std::string& name, int64_t out, int64_t in, const std::vector<std::string>& tensors, bool head = false) {
    add(name + ".weight", {out, in}, with(tensors, ".weight"), head);
    add(name + ".bias", {out}, with(tensors, ".bias"), head);
  }
  void add_norm(const std::string& name, int64_t width, const std::string& tensor, bool head = false) {
    add(name + ".weight", {width}, {tensor + ".weight"}, head);
    add(name + ".bias", {width}, {tensor + ".bias"}, head);
  }

  std::vector<ParameterInfo> rows;

 private:
  static std::vector<std::string> with(std::vector<std::string> tensors, const char* ending) {
    for (std::string& tensor : tensors) tensor += ending;
    return tensors;
  }
  std::string prefix_;
};

}  // namespace

std::vector<ParameterInfo> parameter_table(const ModelConfig& config) {
  const Names& n = names_of(config.family);
  const int64_t width = config.hidden_size;
  Table table(config.family);
  table.add("embeddings.word.weight", {config.vocab_size, width}, {"$embeddings.word_embeddings.weight"});
  table.add("embeddings.position.weight", {config.max_position_embeddings, width}, {"$embeddings.position_embeddings.weight"});
  if (config.has_token_types())
    table.add("embeddings.type.weight", {config.type_vocab_size, width}, {"$embeddings.token_type_embeddings.weight"});
  table.add_norm("embeddings.norm", width, "$embeddings.LayerNorm");
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string engine = "layer." + std::to_string(layer) + ".";
    const std::string file = n.layer + std::to_string(layer) + ".";
    table.add_dense(engine + "qkv", 3 * width, width, {file + n.query, file + n.key, file + n.value});
    table.add_dense(engine + "attention_out", width, width, {file + n.attention_out});
    table.add_norm(engine + "attention_norm", width, file + n.attention_norm);
    table.add_dense(engine + "up", config.intermediate_size, width, {file + n.up});
    table.add_dense(engine + "down", width, config.intermediate_size, {file + n.down});
    table.add_norm(engine + "output_norm", width, file + n.output_norm);
  }
  if (config.head == Head::classification) {
    table.add_dense("head.dense", width, width, {n.head_dense}, true);
    table.add_dense("head.out", config.num_labels(), width, {n.head_out}, true);
    return std::move(table.rows);
  }
  // The decoder is the word table itself (tied), with a bias of its own.
  table.add_dense("mlm.dense", width, width, {n.mlm_dense}, true);
  table.add_norm("mlm.norm", width, n.mlm_norm, true);
  table.add("mlm.bias", {config.vocab_size}, {n.mlm_bias}, true);
  if (config.head == Head::pretraining) {
    table.add_dense("pooler", width, width, {"$pooler.dense"}, true);
    table.add_dense("nsp", 2, width, {"cls.seq_relationship"}, true);
  }
  return std::move(table.rows);
}

int32_t stacked_parts(std::string_view name) { return name.find(".qkv.") == std::string_view::npos ? 1 : 3; }

bool has_decay(std::string_view name) { return !name.ends_with(".bias") && !name.ends_with("norm.weight"); }

}  // namespace muster::models
