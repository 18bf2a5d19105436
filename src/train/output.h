// The output folder of a run: what may already be in it, and the finished model that is left there.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "models/config.h"
#include "models/weights.h"
#include "storage/file.h"
#include "text/tokenizer.h"
#include "train/arguments.h"
#include "train/schedule.h"
#include "train/state.h"

namespace muster::train {

/// Makes the folder. One that holds a model or checkpoints of an earlier run is an Error(invalid_argument) unless the run resumes, or
/// overwrites: then what muster had written there is removed. Leftovers of killed processes are removed too.
/// The folder is held as long as the result lives: Error(io) when another run holds it.
[[nodiscard]] storage::FolderLock prepare_output(const TrainingArguments& arguments);

/// What the model card and train_results.json tell.
struct RunReport {
  std::string model_name, data_name;
  std::string precision, isa;  // with why
  int threads = 1;
  int64_t train_rows = 0, parameters = 0;
  std::vector<std::pair<std::string, double>> summary;  // train_loss, train_runtime, ...; eval_... of the model that was kept
};

/// Writes the finished model: config.json, tokenizer, README.md, trainer_state.json, train_results.json, and model.safetensors last, each
/// whole or not at all: a folder with model.safetensors is a finished one.
void write_finished(const TrainingArguments& arguments, const models::ModelConfig& config, const models::Parameters& parameters,
                    const text::Tokenizer* tokenizer, const TrainState& state, const Plan& plan, const RunReport& report);

/// README.md: front matter and tables as Hugging Face model cards have them.
std::string model_card(const TrainingArguments& arguments, const models::ModelConfig& config, const TrainState& state, const Plan& plan,
                       const RunReport& report);

}  // namespace muster::train
