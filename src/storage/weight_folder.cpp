// A model folder's weights, in one file or in shards, as one map.
#include <nlohmann/json.hpp>

#include "storage/file.h"
#include "storage/printable.h"
#include "storage/safetensors.h"

namespace muster::storage {
namespace {

/// tensor -> file name, as "weight_map" of the index has it.
std::map<std::string, std::string> read_index(const std::string& path) {
  const auto malformed = [&](std::string_view why) { return Error(ErrorKind::corrupt, "{}: {}; fetch the file again", path, why); };
  const nlohmann::json index = nlohmann::json::parse(read_file(path), nullptr, false);
  if (index.is_discarded()) throw malformed("not valid JSON");
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) throw malformed("no object 'weight_map'");
  std::map<std::string, std::string> result;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (!file.is_string()) throw malformed(fmt::format("the file of tensor '{}' is not a string", printable(tensor)));
    const auto& name = file.get_ref<const std::string&>();
    if (name.empty() || name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      throw malformed(fmt::format("the file '{}' of tensor '{}' is not a plain file name", printable(name), printable(tensor)));
    result.emplace(tensor, name);
  }
  if (result.empty()) throw malformed("'weight_map' is empty");
  return result;
}

}  // namespace

WeightFolder WeightFolder::open(const std::string& folder) {
  WeightFolder result;
  result.folder_ = folder;
  const std::string single = folder + "/model.safetensors", index = single + ".index.json";
  if (is_file(single)) {
    result.files_.push_back(SafetensorsFile::open(single));
    for (const auto& [name, info] : result.files_.front().tensors()) result.file_of_.emplace(name, 0);
    return result;
  }
  if (!is_file(index))
    throw Error(ErrorKind::not_found, "{}: neither model.safetensors nor model.safetensors.index.json is there{}", folder,
                is_file(folder + "/pytorch_model.bin") ? "; convert pytorch_model.bin with save_pretrained(safe_serialization=True)"
                                                       : "; check the path of the model folder");
  std::map<std::string, size_t> opened;
  for (const auto& [tensor, file] : read_index(index)) {
    const auto [place, is_new] = opened.emplace(file, result.files_.size());
    if (is_new) {
      if (!is_file(folder + "/" + file))
        throw Error(ErrorKind::not_found, "{}: the shard {} is not there, though {} names it; fetch it", folder, file, index);
      result.files_.push_back(SafetensorsFile::open(folder + "/" + file));
    }
    const SafetensorsFile& holder = result.files_[place->second];
    if (!holder.tensors().contains(tensor))
      throw Error(ErrorKind::corrupt, "{}: no tensor '{}', though {} says so; fetch both again", holder.path(), printable(tensor), index);
    result.file_of_.emplace(tensor, place->second);
  }
  return result;
}

bool has_weights(const std::string& folder) {
  return is_file(folder + "/model.safetensors") || is_file(folder + "/model.safetensors.index.json");
}

void write_weight_folder(const std::string& folder, const std::vector<NamedTensorView>& tensors, const ReadBytes& read,
                         size_t max_shard_bytes) {
  std::vector<std::vector<NamedTensorView>> shards(1);
  size_t total = 0, filled = 0;
  for (const NamedTensorView& item : tensors) {
    if (!shards.back().empty() && filled + item.tensor.bytes() > max_shard_bytes) shards.emplace_back(), filled = 0;
    shards.back().push_back(item);
    filled += item.tensor.bytes(), total += item.tensor.bytes();
  }
  const std::string single = folder + "/model.safetensors", index = single + ".index.json";
  std::vector<std::string> stale;  // of an earlier model
  for (const TreeEntry& entry : list_tree(folder))
    if (entry.name.starts_with("model-") && entry.name.ends_with(".safetensors")) stale.push_back(entry.name);
  if (shards.size() == 1) {
    write_safetensors(single, tensors, {{"format", "pt"}}, read);
    remove_tree(index);
    for (const std::string& name : stale) remove_tree(folder + "/" + name);
    return;
  }
  remove_tree(index);
  nlohmann::json weight_map = nlohmann::json::object();
  for (size_t s = 0; s < shards.size(); ++s) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", s + 1, shards.size());
    write_safetensors(folder + "/" + name, shards[s], {{"format", "pt"}}, read);
    for (const NamedTensorView& item : shards[s]) weight_map[item.name] = name;
    std::erase(stale, name);
  }
  const nlohmann::json document{{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}};
  write_file_atomic(index, document.dump(2) + "\n", "index of the weights");
  remove_tree(single);
  for (const std::string& name : stale) remove_tree(folder + "/" + name);
}

std::vector<std::string> WeightFolder::names() const {
  std::vector<std::string> result;
  for (const auto& [name, file] : file_of_) result.push_back(name);
  return result;
}

bool WeightFolder::contains(const std::string& name) const { return file_of_.contains(name); }

const TensorInfo* WeightFolder::find(const std::string& name) const {
  const auto found = file_of_.find(name);
  return found == file_of_.end() ? nullptr : &files_[found->second].tensors().at(name);
}

const SafetensorsFile& WeightFolder::holder(const std::string& name) const {
  const auto found = file_of_.find(name);
  if (found == file_of_.end()) throw Error(ErrorKind::not_found, "{}: no tensor '{}' in its weights", folder_, name);
  return files_[found->second];
}

const std::string& WeightFolder::file_of(const std::string& name) const { return holder(name).path(); }
TensorView WeightFolder::view(const std::string& name) const { return holder(name).view(name); }
Tensor WeightFolder::load_f32(const std::string& name) const { return holder(name).load_f32(name); }
const Metadata& WeightFolder::metadata() const { return files_.front().metadata(); }

}  // namespace muster::storage
