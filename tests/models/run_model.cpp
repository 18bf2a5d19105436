#include "models/run_model.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>

#include "runtime/compile.h"
#include "storage/file.h"

namespace muster::models {
namespace {

using Json = nlohmann::json;

std::vector<Sequence> sequences_of(const Json& json) {
  std::vector<Sequence> sequences;
  for (const Json& s : json) sequences.push_back({s.at("ids"), s.value("type_ids", std::vector<int32_t>{})});
  return sequences;
}

}  // namespace

Inputs pack(const ModelConfig& config, const std::vector<Sequence>& sequences) {
  std::vector<int32_t> ids, type_ids, cu_seqlens{0};
  for (const Sequence& s : sequences) {
    ids.insert(ids.end(), s.ids.begin(), s.ids.end());
    type_ids.insert(type_ids.end(), s.type_ids.begin(), s.type_ids.end());
    cu_seqlens.push_back(static_cast<int32_t>(ids.size()));
  }
  return make_inputs(config, ids, type_ids, cu_seqlens);
}

Inputs run(const std::string& backend, const graph::Graph& graph, const Parameters& parameters, const Inputs& inputs, uint64_t seed) {
  ThreadPool threads(1);
  runtime::Options options;
  options.backend = backend;
  options.precision = runtime::Precision::f32;
  runtime::Session session(runtime::compile(graph, options, threads), parameters);
  Inputs outputs;
  for (const auto& [name, tensor] : session.run(inputs, seed)) outputs.insert_or_assign(name, tensor.clone());
  return outputs;
}

Golden read_golden(const std::string& folder) {
  const Json json = Json::parse(storage::read_file(folder + "/golden.json"));
  Golden golden;
  golden.sequences = sequences_of(json.at("logits").at("sequences"));
  golden.logits = json.at("logits").at("logits").get<std::vector<std::vector<float>>>();
  if (!json.contains("training")) return golden;
  const Json& training = json.at("training");
  golden.smoothing = training.at("smoothing");
  golden.smoothed_loss = training.at("smoothed_loss");
  for (const Json& step : training.at("steps"))
    golden.steps.push_back({sequences_of(step.at("sequences")), step.at("labels"), step.at("loss"), step.at("grad_norm")});
  return golden;
}

std::string data_folder(const std::string& name) { return std::string(MUSTER_TEST_DATA) + "/models/" + name; }

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "muster-models-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) throw Error(ErrorKind::io, "cannot make {}", path_);
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace muster::models
