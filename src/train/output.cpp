#include "train/output.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "storage/file.h"
#include "storage/safetensors.h"
#include "train/checkpoint.h"

namespace muster::train {
namespace {

std::string results_json(const TrainingArguments& arguments, const TrainState& state, const Plan& plan, const RunReport& report) {
  nlohmann::ordered_json j;
  j["epoch"] = static_cast<double>(state.global_step) / static_cast<double>(plan.steps_per_epoch);
  j["global_step"] = state.global_step;
  j["train_samples"] = report.train_rows;
  for (const auto& [name, value] : report.summary) j[name] = value;
  if (state.best_metric) {
    j["best_metric"] = *state.best_metric;
    j["best_global_step"] = state.best_step;
    j["best_metric_name"] = best_metric(arguments).key;
  }
  j["parameters"] = report.parameters;
  j["precision"] = report.precision;
  j["isa"] = report.isa;
  j["threads"] = report.threads;
  auto& all = j["arguments"];
  for (const ArgumentInfo& info : argument_table()) all[info.name] = argument_text(arguments, info.name);
  return j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

storage::FolderLock prepare_output(const TrainingArguments& arguments) {
  const std::string& dir = arguments.output_dir;
  storage::make_folders(dir);
  storage::FolderLock lock(dir, "muster train");
  storage::remove_leftovers(dir);
  const std::vector<std::string> checkpoints = list_checkpoints(dir);
  const bool finished = storage::has_weights(dir);
  if (!finished && checkpoints.empty()) return lock;
  if (!arguments.resume_from_checkpoint.empty()) return lock;
  if (!arguments.overwrite_output_dir)
    throw Error(ErrorKind::invalid_argument,
                "{} already holds {}; go on with --resume_from_checkpoint latest, replace it with --overwrite_output_dir, or choose "
                "another --output_dir",
                dir, finished ? "a finished model" : "checkpoints of a run");
  // The model goes first: a run killed in here leaves no folder that looks finished.
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) storage::remove_tree(dir + "/" + name);
  for (const std::string& folder : checkpoints) storage::remove_tree(folder);
  for (const char* name : {"runs", "run.json", "metrics.jsonl", "train_results.json", "trainer_state.json", "README.md"})
    storage::remove_tree(dir + "/" + name);
  return lock;
}

void write_finished(const TrainingArguments& arguments, const models::ModelConfig& config, const models::Parameters& parameters,
                    const text::Tokenizer* tokenizer, const TrainState& state, const Plan& plan, const RunReport& report) {
  const std::string& dir = arguments.output_dir;
  std::string best = state.best_checkpoint();
  if (!best.empty()) best = dir + "/" + best;
  if (!storage::is_folder(best)) best.clear();
  if (tokenizer) copy_tokenizer(*tokenizer, dir);
  storage::write_file_atomic(dir + "/README.md", model_card(arguments, config, state, plan, report), "model card");
  storage::write_file_atomic(dir + "/trainer_state.json", trainer_state_json(state, arguments, plan, best), "trainer state");
  storage::write_file_atomic(dir + "/train_results.json", results_json(arguments, state, plan, report), "training results");
  models::save_parameters(dir, config, parameters);
}

}  // namespace muster::train
