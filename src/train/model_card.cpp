// README.md of a finished model: YAML front matter and tables, as the model cards of the Transformers Trainer have them.
#include <nlohmann/json.hpp>

#include "train/output.h"

namespace muster::train {
namespace {

/// A text that is safe as a YAML scalar: JSON strings are YAML strings.
std::string quoted(const std::string& text) { return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

double value_of(const Record& r, std::string_view name, bool& found) {
  for (const auto& [key, value] : r.values)
    if (key == name) {
      found = true;
      return value;
    }
  found = false;
  return 0;
}

/// A row an evaluation, with the last training loss logged before it.
std::string results_table(const TrainState& state) {
  std::string rows;
  std::string loss = "-";
  for (const Record& r : state.log) {
    bool has = false;
    const double train = value_of(r, "loss", has);
    if (has) loss = fmt::format("{:.4f}", train);
    const double eval = value_of(r, "eval_loss", has);
    if (!has) continue;
    rows += fmt::format("| {} | {:.2f} | {} | {:.4f} |", loss, r.epoch, r.step, eval);
    for (const char* name : {"eval_accuracy", "eval_f1_macro", "eval_recall_macro"})
      rows += fmt::format(" {:.4f} |", value_of(r, name, has));
    rows += "\n";
  }
  if (rows.empty()) return "There was no evaluation during the training.\n";
  return "| Training loss | Epoch | Step | Validation loss | Accuracy | Macro F1 | Macro recall |\n|---|---|---|---|---|---|---|\n" + rows;
}

}  // namespace

std::string model_card(const TrainingArguments& arguments, const models::ModelConfig& config, const TrainState& state, const Plan& plan,
                       const RunReport& report) {
  std::string out =
      "---\nlibrary_name: transformers\npipeline_tag: text-classification\ntags:\n- text-classification\n- generated_from_trainer\n";
  if (!report.model_name.empty()) out += fmt::format("base_model: {}\n", quoted(report.model_name));
  if (!report.data_name.empty()) out += fmt::format("datasets:\n- {}\n", quoted(report.data_name));
  out += "metrics:\n- accuracy\n- f1\n- recall\n---\n\n";
  out += fmt::format("# {} for text classification\n\nFine-tuned by muster on {} rows. Labels:",
                     report.model_name.empty() ? config.model_type : report.model_name, report.train_rows);
  for (const std::string& label : config.labels) out += " " + label + ",";
  out.back() = '.';
  out += "\n\n## Results\n\n" + results_table(state);
  out += "\n## Hyper-parameters\n\n| argument | value |\n|---|---|\n";
  const TrainingArguments defaults;
  for (const ArgumentInfo& info : argument_table()) {
    if (!info.changes_result) continue;
    const std::string value = argument_text(arguments, info.name);
    const bool always = info.name == "learning_rate" || info.name == "seed" || info.name == "per_device_train_batch_size" ||
                        info.name == "num_train_epochs";
    if (always || value != argument_text(defaults, info.name)) out += fmt::format("| {} | {} |\n", info.name, value);
  }
  out += fmt::format("| steps | {} of {} |\n| precision | {} |\n| instruction set | {} |\n", state.global_step, plan.total_steps,
                     report.precision, report.isa);
  out += "\nArguments that are not listed have their defaults.\n";
  return out;
}

}  // namespace muster::train
