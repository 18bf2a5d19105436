#include "train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/log.h"
#include "storage/file.h"
#include "storage/safetensors.h"
#include "storage/sha256.h"

namespace muster::train {
namespace {

using nlohmann::json;
constexpr const char* kStateFile = "muster_state.json";
constexpr const char* kMomentsFile = "optimizer.safetensors";
constexpr int kFormat = 1;

void write_moments(const std::string& folder, const Snapshot& s, const storage::ReadBytes& read) {
  std::vector<storage::NamedTensorView> tensors;
  for (const auto& [name, tensor] : s.first_moments) tensors.push_back({"exp_avg." + name, tensor.view()});
  for (const auto& [name, tensor] : s.second_moments) tensors.push_back({"exp_avg_sq." + name, tensor.view()});
  storage::write_safetensors(folder + "/" + kMomentsFile, tensors, {{"format", "pt"}}, read);
}

/// The document without its own hash, as it is hashed.
std::string body_of(json document) {
  document.erase("sha256");
  return document.dump();
}

void write_state(const std::string& folder, const Snapshot& s) {
  json files = json::object();
  for (const storage::TreeEntry& entry : storage::list_tree(folder))
    if (entry.kind == storage::TreeEntry::Kind::file) files[entry.name] = storage::sha256_file(folder + "/" + entry.name);
  json document{{"format", kFormat}, {"files", files}, {"identity", s.identity}, {"state", json::parse(to_json(s.state))}};
  document["sha256"] = storage::sha256_hex(body_of(document));
  storage::write_file_atomic(folder + "/" + kStateFile, document.dump(1) + "\n", "checkpoint state");
}

std::optional<int64_t> step_of(std::string_view name) {
  constexpr std::string_view kPrefix = "checkpoint-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int64_t step = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (name.empty() || code != std::errc{} || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

std::string name_of(const std::string& folder) { return folder.substr(folder.find_last_of('/') + 1); }

void copy_into(const storage::SafetensorsFile& file, const std::string& name, const Tensor& target) {
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end()) throw Error(ErrorKind::corrupt, "{}: there is no tensor '{}'", file.path(), name);
  const TensorView source = file.view(name);
  if (source.dtype != DType::f32 || source.shape != target.shape())
    throw Error(ErrorKind::corrupt, "{}: tensor '{}' is {}{}, expected f32{}", file.path(), name, muster::name_of(source.dtype),
                to_string(source.shape), to_string(target.shape()));
  std::memcpy(target.data(), source.data, target.bytes());
}

}  // namespace

void copy_tokenizer(const text::Tokenizer& tokenizer, const std::string& folder) {
  for (const auto& file : tokenizer.files())
    storage::write_file_atomic(folder + "/" + file.filename().string(), storage::read_file(file.string()), "tokenizer");
}

std::string save_checkpoint(const Snapshot& s, const storage::ReadBytes& read) {
  const std::string target = fmt::format("{}/checkpoint-{}", s.arguments.output_dir, s.state.global_step);
  storage::AtomicFolder folder(target, storage::AtomicFolder::Existing::replace);
  models::save_parameters(folder.path(), s.config, s.parameters, read);
  if (s.tokenizer) copy_tokenizer(*s.tokenizer, folder.path());
  write_moments(folder.path(), s, read);
  std::string best = s.state.best_checkpoint();
  if (!best.empty()) best = s.arguments.output_dir + "/" + best;
  if (best != target && !storage::is_folder(best)) best.clear();
  storage::write_file_atomic(folder.path() + "/trainer_state.json", trainer_state_json(s.state, s.arguments, s.plan, best),
                             "trainer state");
  write_state(folder.path(), s);
  folder.commit();
  return target;
}

std::vector<std::string> list_checkpoints(const std::string& output_dir) {
  std::vector<std::pair<int64_t, std::string>> found;
  // Names only, not what is in them: a run that goes on may be writing or deleting one meanwhile.
  std::error_code failure;
  std::filesystem::directory_iterator entries(output_dir, failure);
  for (; !failure && entries != std::filesystem::directory_iterator(); entries.increment(failure)) {
    const std::string name = entries->path().filename().string();
    const auto step = step_of(name);
    if (step && storage::is_folder(output_dir + "/" + name)) found.emplace_back(*step, output_dir + "/" + name);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> folders;
  folders.reserve(found.size());
  for (auto& [step, folder] : found) folders.push_back(std::move(folder));
  return folders;
}

void rotate_checkpoints(const std::string& output_dir, int64_t limit, const std::string& best) {
  std::vector<std::string> folders = list_checkpoints(output_dir);
  auto left = static_cast<int64_t>(folders.size());
  for (size_t i = folders.size(); i-- > 1 && left > limit;) {  // from the oldest to the second newest
    if (name_of(folders[i]) == best) continue;
    storage::remove_tree(folders[i]);
    --left;
  }
}

CheckpointInfo open_checkpoint(const std::string& folder) {
  const std::string path = folder + "/" + kStateFile;
  if (!storage::is_folder(folder)) throw Error(ErrorKind::not_found, "--resume_from_checkpoint {}: no such folder; check the path", folder);
  if (!storage::is_file(path)) throw Error(ErrorKind::not_found, "{} is not a checkpoint of muster: it has no {}", folder, kStateFile);
  const json document = json::parse(storage::read_file(path), nullptr, false);
  if (!document.is_object() || !document.contains("sha256") || !document["sha256"].is_string())
    throw Error(ErrorKind::corrupt, "{} is torn or altered", path);
  if (document["sha256"] != storage::sha256_hex(body_of(document)))
    throw Error(ErrorKind::corrupt, "{} is altered: its hash does not agree", path);
  CheckpointInfo info{folder, {}, {}};
  try {
    if (document.at("format") != kFormat)
      throw Error(ErrorKind::unsupported, "{}: format {}; this muster reads format {}", path, document.at("format").dump(), kFormat);
    info.identity = document.at("identity").get<Identity>();
    for (const auto& [name, hash] : document.at("files").items()) {
      const std::string file = fmt::format("{}/{}", folder, name);
      if (!storage::is_file(file)) throw Error(ErrorKind::corrupt, "{} is missing", file);
      if (storage::sha256_file(file) != hash.get<std::string>())
        throw Error(ErrorKind::corrupt, "{} is torn or altered: its hash does not agree", file);
    }
  } catch (const json::exception& e) {
    throw Error(ErrorKind::corrupt, "{}: {}", path, e.what());
  }
  info.state = state_from_json(document.at("state").dump(), path);
  return info;
}

std::optional<CheckpointInfo> find_checkpoint(const std::string& resume_from, const std::string& output_dir) {
  if (resume_from != "latest" && resume_from != "true" && resume_from != "auto") return open_checkpoint(resume_from);
  const std::vector<std::string> folders = list_checkpoints(output_dir);
  for (const std::string& folder : folders) {
    try {
      return open_checkpoint(folder);
    } catch (const Error& e) {
      log_warning("{} is passed over: {}", folder, e.what());
    }
  }
  if (resume_from == "auto" && folders.empty()) return std::nullopt;
  throw Error(ErrorKind::not_found, "--resume_from_checkpoint {}: {} has no whole checkpoint{}", resume_from, output_dir,
              folders.empty() ? "" : "; its damaged ones can be replaced with --overwrite_output_dir");
}

void load_weights(const std::string& folder, const models::ModelConfig& config, const models::Parameters& parameters) {
  models::LoadReport report;
  const models::Parameters loaded = models::load_parameters(folder, config, {}, report);
  if (!report.initialised.empty()) throw Error(ErrorKind::corrupt, "{}: there is no tensor '{}'", folder, report.initialised.front());
  for (const auto& [name, tensor] : loaded) std::memcpy(parameters.find(name)->second.data(), tensor.data(), tensor.bytes());
}

void load_moments(const std::string& folder, const models::Parameters& first, const models::Parameters& second) {
  const auto file = storage::SafetensorsFile::open(folder + "/" + kMomentsFile);
  for (const auto& [name, tensor] : first) copy_into(file, "exp_avg." + name, tensor);
  for (const auto& [name, tensor] : second) copy_into(file, "exp_avg_sq." + name, tensor);
}

}  // namespace muster::train
