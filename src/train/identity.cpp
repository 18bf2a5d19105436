#include "train/identity.h"

#include <span>

#include "storage/sha256.h"

namespace muster::train {
namespace {

template <typename T>
void add(storage::Sha256& hash, const std::vector<T>& values) {
  const auto size = static_cast<uint64_t>(values.size());
  hash.update(std::as_bytes(std::span(&size, 1)));
  hash.update(std::as_bytes(std::span(values)));
}

/// Hashes are shown short in messages, but compared whole.
bool is_hash(const std::string& text) { return text.starts_with("sha256:"); }

}  // namespace

std::string fingerprint(const models::Parameters& parameters) {
  storage::Sha256 hash;
  for (const auto& [name, tensor] : parameters) {
    hash.update(name + to_string(tensor.shape()) + "\n");
    hash.update(std::as_bytes(tensor.as<float>()));
  }
  return "sha256:" + hash.hex();
}

std::string fingerprint(const data::TokenizedDataset& dataset) {
  storage::Sha256 hash;
  add(hash, dataset.tokens.ids);
  add(hash, dataset.tokens.type_ids);
  add(hash, dataset.tokens.cu_seqlens);
  add(hash, dataset.labels);
  return "sha256:" + hash.hex();
}

Identity identity_of(const TrainingArguments& arguments, const models::ModelConfig& config, const models::Parameters& parameters,
                     int64_t rows, const std::string& data, const std::string& precision, const std::string& isa) {
  Identity id;
  for (const ArgumentInfo& info : argument_table())
    if (info.changes_result) id[info.name] = argument_text(arguments, info.name);
  // How the seed of the data is written does not matter, only its value.
  id["data_seed"] = std::to_string(arguments.data_seed.value_or(arguments.seed));
  id["model config"] = "sha256:" + storage::sha256_hex(models::to_json(config));
  id["starting weights"] = fingerprint(parameters);
  id["training rows"] = std::to_string(rows);
  id["training data"] = data;
  id["precision"] = precision;
  id["instruction set"] = isa;
  return id;
}

std::vector<std::string> differences(const Identity& saved, const Identity& now) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : now) {
    if (name == "instruction set") continue;
    const auto found = saved.find(name);
    if (found != saved.end() && found->second == value) continue;
    if (found == saved.end() || is_hash(value))
      lines.push_back(name + " differs");
    else
      lines.push_back(
          fmt::format("{} was {}, is {}", name, found->second.empty() ? "not set" : found->second, value.empty() ? "not set" : value));
  }
  return lines;
}

}  // namespace muster::train
