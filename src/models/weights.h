// The parameters of a model: made from scratch, read from and written to a Hugging Face model folder.
// Here is the table that says which tensors of the file make which parameter of the engine.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "models/config.h"
#include "storage/safetensors.h"

namespace muster::models {

/// Engine name -> f32 tensor: what runtime::Session and the optimizer work on.
///   embeddings.{word,position,type}.weight, embeddings.norm.*; per layer N: layer.N.qkv.* ([3H, H], q over k over v), .attention_out.*,
///   .attention_norm.*, .up.*, .down.*, .output_norm.*; head.dense.*, head.out.*   (* = weight, bias);
///   of masked language models instead of head.*: mlm.dense.*, mlm.norm.*, mlm.bias [V], and of pre-training models pooler.*, nsp.*
using Parameters = std::map<std::string, Tensor, std::less<>>;

/// One parameter of the engine and the tensors of the file it is made of (stacked along the first axis when several).
struct ParameterInfo {
  std::string name;
  Shape shape;
  std::vector<std::string> tensors;  // Hugging Face names, with the family's prefix: "bert.pooler.dense.weight"
  bool head = false;                 // may be missing in a checkpoint: it is initialised then
};
/// In the order of the forward pass.
std::vector<ParameterInfo> parameter_table(const ModelConfig& config);

/// False for biases and norm weights: they get no weight decay.
bool has_decay(std::string_view name);

/// Tensors of the file that a parameter is stacked from: 3 for q over k over v, else 1.
int32_t stacked_parts(std::string_view name);

struct LoadOptions {
  uint64_t seed = 0;                     // of a head that must be initialised
  bool ignore_mismatched_sizes = false;  // a head of another shape is initialised anew instead of an error
};
/// Hugging Face names.
struct LoadReport {
  std::vector<std::string> initialised;  // "classifier.weight": absent from the file, or of another shape and allowed to be
  std::vector<std::string> unused;       // in the file, not in this model
};

/// Reads model.safetensors or its shards. Names may have the prefix of the family or none, `module.` or `_orig_mod.` before it, and
/// LayerNorm.gamma/beta. F32, F16, BF16 and F64 are converted. Throws Error(not_found) for a missing tensor of the encoder,
/// Error(invalid_argument) for another shape (naming tensor, file, expected and found shape), Error(unsupported) for another dtype,
/// Error(corrupt) when two tensors claim one place.
Parameters load_parameters(const std::string& folder, const ModelConfig& config, const LoadOptions& options, LoadReport& report);

/// From scratch as Transformers does: Normal(0, initializer_range) weights, zero biases and padding rows, norms 1 and 0. A value depends on
/// the seed and the parameter's name only.
Parameters init_parameters(const ModelConfig& config, uint64_t seed);

/// Writes folder/config.json and the weights (F32, Hugging Face names; storage::write_weight_folder), each file atomically; makes the
/// folder. `read`: for parameters that change meanwhile.
/// Throws Error(io), Error(invalid_argument) for parameters that are not the config's.
void save_parameters(const std::string& folder, const ModelConfig& config, const Parameters& parameters,
                     const storage::ReadBytes& read = {});

}  // namespace muster::models
