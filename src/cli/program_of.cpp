#include "cli/program_of.h"

#include "cli/support.h"
#include "core/error.h"
#include "models/classifier.h"
#include "storage/file.h"
#include "train/task.h"

namespace muster::cli {

std::vector<NamedProgram> programs_of(const models::ModelConfig& config, const std::string& task, bool train, double label_smoothing) {
  if (task != "classification") throw Error(ErrorKind::usage, "--task {}: have classification", task);
  std::vector<NamedProgram> programs;
  programs.push_back({"infer", models::build_classifier(config)});
  if (train) programs.push_back({"train", train::build_training(config, label_smoothing)});
  return programs;
}

models::ModelConfig config_named(const std::string& config_name) {
  if (!config_name.ends_with(".json")) return models::named_config(config_name);
  return models::parse_config(storage::read_file(config_name), config_name);
}

models::ModelConfig config_of(const std::string& model, const std::string& config_name) {
  if (model.empty() == config_name.empty()) throw Error(ErrorKind::usage, "give either --model FOLDER or --config_name NAME");
  return model.empty() ? config_named(config_name) : models::read_config(ModelSource(model).folder());
}

}  // namespace muster::cli
