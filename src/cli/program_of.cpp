#include "cli/program_of.h"

#include <CLI/CLI.hpp>

#include "cli/support.h"
#include "core/error.h"
#include "models/classifier.h"
#include "models/pretrainer.h"
#include "storage/file.h"
#include "train/pretraining.h"
#include "train/task.h"

namespace muster::cli {

models::ModelConfig with_head(models::ModelConfig config, const std::string& task, const std::string& next_sentence) {
  using models::Head;
  const bool classify = task == "classification" || (task == "auto" && config.head == Head::classification);
  const bool bert = config.family == models::Family::bert;
  if (next_sentence == "true" && (classify || !bert))
    throw Error(ErrorKind::usage, "--next_sentence true: only BERT with --task masked_lm has that head");
  if (classify) {
    config.head = Head::classification;
    return config;
  }
  const bool pairs =
      next_sentence == "auto" ? config.head == Head::pretraining || (config.head == Head::classification && bert) : next_sentence == "true";
  config.head = pairs ? Head::pretraining : Head::masked_lm;
  return config;
}

std::vector<NamedProgram> programs_of(const models::ModelConfig& config, bool train, double label_smoothing) {
  std::vector<NamedProgram> programs;
  if (config.head == models::Head::classification) {
    programs.push_back({"infer", models::build_classifier(config)});
    if (train) programs.push_back({"train", train::build_training(config, label_smoothing)});
    return programs;
  }
  models::PretrainerOptions bare;
  bare.loss = false;
  programs.push_back({"infer", models::build_pretrainer(config, bare)});
  if (!train) return programs;
  programs.push_back({"evaluate", models::build_pretrainer(config)});
  programs.push_back({"train", train::build_pretraining(config)});
  return programs;
}

void declare_task_flags(CLI::App& app, std::string& task, std::string& next_sentence) {
  app.add_option("--task", task, "classification, masked_lm, or auto: what the model has a head for")
      ->check(CLI::IsMember({"auto", "classification", "masked_lm"}))
      ->capture_default_str();
  app.add_option("--next_sentence", next_sentence,
                 "masked_lm: with the next-sentence head; auto: as the model has it, else where its family has")
      ->check(CLI::IsMember({"auto", "true", "false"}))
      ->capture_default_str();
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
