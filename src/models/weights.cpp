#include "models/weights.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "core/hash.h"
#include "core/philox.h"
#include "storage/file.h"
#include "storage/safetensors.h"

namespace muster::models {
namespace {

/// The name a tensor has in parameter_table, without the family's prefix, whatever wrote the file.
std::string canonical(std::string_view name, Family family) {
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view wrapper : {"_orig_mod.", "module."}) {  // torch.compile, DistributedDataParallel
      if (!name.starts_with(wrapper)) continue;
      name.remove_prefix(wrapper.size());
      again = true;
    }
  }
  const std::string prefix = std::string(prefix_of(family)) + ".";
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  std::string result(name);
  for (const auto& [old_ending, ending] : {std::pair{"LayerNorm.gamma", "LayerNorm.weight"}, std::pair{"LayerNorm.beta", "LayerNorm.bias"}})
    if (name.ends_with(old_ending)) result.replace(result.size() - std::strlen(old_ending), std::string::npos, ending);
  return result;
}

/// The tensors of a folder by canonical name.
class Source {
 public:
  Source(const std::string& folder, Family family) : files_(storage::WeightFolder::open(folder)), family_(family) {
    for (const std::string& name : files_.names()) {
      const auto [it, fresh] = by_name_.emplace(canonical(name, family), name);
      if (!fresh) throw Error(ErrorKind::corrupt, "{}: tensors {} and {} are the same parameter", files_.file_of(name), it->second, name);
    }
  }

  /// The name in the file, or null.
  [[nodiscard]] const std::string* find(const std::string& tensor) {
    const auto it = by_name_.find(canonical(tensor, family_));
    if (it == by_name_.end()) return nullptr;
    used_.insert(it->second);
    return &it->second;
  }
  [[nodiscard]] const storage::WeightFolder& files() const { return files_; }
  [[nodiscard]] std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (const std::string& name : files_.names())
      if (!used_.contains(name)) names.push_back(name);
    return names;
  }

 private:
  storage::WeightFolder files_;
  Family family_;
  std::map<std::string, std::string> by_name_;
  std::set<std::string> used_;
};

/// Rows [part * n, (part + 1) * n) of a parameter that is stacked from `parts` tensors.
TensorView part_of(const Tensor& parameter, size_t part, size_t parts) {
  TensorView view = parameter.view();
  view.shape[0] /= static_cast<int64_t>(parts);
  view.data = static_cast<std::byte*>(view.data) + part * view.bytes();
  return view;
}

bool is_norm_weight(std::string_view name) { return name.ends_with("norm.weight"); }

/// Normal weights, zero biases, norms 1 and 0; rows of padding zero, as Transformers' _init_weights.
void initialise(const ParameterInfo& row, const ModelConfig& config, uint64_t seed, const Tensor& parameter) {
  const auto values = parameter.as<float>();
  if (row.name.ends_with(".bias") || is_norm_weight(row.name)) {
    std::fill(values.begin(), values.end(), is_norm_weight(row.name) ? 1.0f : 0.0f);
    return;
  }
  Philox random(seed, fnv1a(row.name));
  for (float& v : values) v = static_cast<float>(random.normal() * config.initializer_range);
  const bool padded =
      row.name == "embeddings.word.weight" || (row.name == "embeddings.position.weight" && config.family == Family::roberta);
  if (padded && config.pad_token_id < row.shape[0])
    std::fill_n(values.begin() + config.pad_token_id * config.hidden_size, config.hidden_size, 0.0f);
}

[[noreturn]] void throw_missing(const storage::WeightFolder& files, const std::string& tensor, const Shape& shape) {
  const std::vector<std::string> names = files.names();
  throw Error(ErrorKind::not_found,
              "{}: tensor {} {} is missing; the weights have {} tensors, the first is {}: are they of this config.json?",
              names.empty() ? files.folder() : files.file_of(names.front()), tensor, to_string(shape), names.size(),
              names.empty() ? "none" : names.front());
}

/// False when a head is of another shape and that is allowed.
bool load_part(const storage::WeightFolder& files, const std::string& name, const TensorView& to, bool may_differ, bool head) {
  const storage::TensorInfo& info = *files.find(name);
  if (info.shape != to.shape) {
    if (may_differ) return false;
    throw Error(ErrorKind::invalid_argument, "{}: tensor {} has shape {}, but config.json makes it {}{}", files.file_of(name), name,
                to_string(info.shape), to_string(to.shape), head ? "; --ignore_mismatched_sizes initialises the head anew" : "");
  }
  if (!info.dtype || !is_float(*info.dtype))
    throw Error(ErrorKind::unsupported, "{}: tensor {} is {}; muster reads F32, F16, BF16 and F64 weights", files.file_of(name), name,
                info.dtype_name);
  convert(files.view(name), to);
  return true;
}

}  // namespace

Parameters load_parameters(const std::string& folder, const ModelConfig& config, const LoadOptions& options, LoadReport& report) {
  Source source(folder, config.family);
  Parameters parameters;
  for (const ParameterInfo& row : parameter_table(config)) {
    Tensor parameter(DType::f32, row.shape);
    for (size_t i = 0; i < row.tensors.size(); ++i) {
      const TensorView to = part_of(parameter, i, row.tensors.size());
      const std::string* name = source.find(row.tensors[i]);
      if (name == nullptr && !row.head) throw_missing(source.files(), row.tensors[i], to.shape);
      if (name != nullptr && load_part(source.files(), *name, to, row.head && options.ignore_mismatched_sizes, row.head)) continue;
      initialise(row, config, options.seed, parameter);  // a head's parameter is one tensor
      report.initialised.push_back(row.tensors[i]);
    }
    parameters.insert_or_assign(row.name, std::move(parameter));
  }
  for (std::string& name : source.unused()) report.unused.push_back(std::move(name));
  return parameters;
}

Parameters init_parameters(const ModelConfig& config, uint64_t seed) {
  Parameters parameters;
  for (const ParameterInfo& row : parameter_table(config)) {
    Tensor parameter(DType::f32, row.shape);
    initialise(row, config, seed, parameter);
    parameters.insert_or_assign(row.name, std::move(parameter));
  }
  return parameters;
}

void save_parameters(const std::string& folder, const ModelConfig& config, const Parameters& parameters, const storage::ReadBytes& read) {
  const std::vector<ParameterInfo> table = parameter_table(config);
  std::vector<storage::NamedTensorView> tensors;
  for (const ParameterInfo& row : table) {
    const auto it = parameters.find(row.name);
    if (it == parameters.end()) throw Error(ErrorKind::invalid_argument, "cannot save {}: parameter {} is missing", folder, row.name);
    if (it->second.dtype() != DType::f32 || it->second.shape() != row.shape)
      throw Error(ErrorKind::invalid_argument, "cannot save {}: parameter {} is {} {}, but config.json makes it f32 {}", folder, row.name,
                  name_of(it->second.dtype()), to_string(it->second.shape()), to_string(row.shape));
    for (size_t i = 0; i < row.tensors.size(); ++i) tensors.push_back({row.tensors[i], part_of(it->second, i, row.tensors.size())});
  }
  if (parameters.size() != table.size())
    throw Error(ErrorKind::invalid_argument, "cannot save {}: {} parameters were given, but the model has {}", folder, parameters.size(),
                table.size());
  storage::make_folders(folder);
  write_config(folder, config);
  storage::write_weight_folder(folder, tensors, read);  // last: it marks the folder as finished
}

}  // namespace muster::models
