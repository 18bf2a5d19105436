// Checkpoint folders, checkpoint-<step>/: a model that Transformers loads as it is, and beside it all that an exact continuation needs.
//   config.json, model.safetensors, the tokenizer's files      as a finished model
//   optimizer.safetensors                                       exp_avg.NAME and exp_avg_sq.NAME, f32, as trained (used_rows.h)
//   trainer_state.json                                          for tools that know the Transformers Trainer
//   muster_state.json                                           state, identity of the run, SHA-256 of every file, and of itself
// A folder appears whole or not at all; one damaged later is found by its hashes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/weights.h"
#include "storage/safetensors.h"
#include "text/tokenizer.h"
#include "train/identity.h"
#include "train/schedule.h"
#include "train/state.h"

namespace muster::train {

/// What is saved: a running trainer's parts, most of them by reference.
struct Snapshot {
  const models::ModelConfig& config;
  const models::Parameters& parameters;
  const models::Parameters& first_moments;
  const models::Parameters& second_moments;
  const text::Tokenizer* tokenizer;  // null: none is written
  TrainState state;
  const TrainingArguments& arguments;
  const Plan& plan;
  const Identity& identity;
};

/// Writes output_dir/checkpoint-<global_step>, replacing one of that name, and returns its path. `read`: for tensors that change
/// meanwhile. Throws Error(io).
std::string save_checkpoint(const Snapshot& snapshot, const storage::ReadBytes& read = {});

/// Deletes checkpoints of output_dir, oldest first, until `limit` are left; never the newest and never the one named `best`
/// ("checkpoint-12"). With a limit of 1 both stay.
void rotate_checkpoints(const std::string& output_dir, int64_t limit, const std::string& best);

/// checkpoint-<step> folders, newest first, whole or not.
std::vector<std::string> list_checkpoints(const std::string& output_dir);

/// The state part of a checkpoint, checked: every hash agrees.
struct CheckpointInfo {
  std::string folder;
  TrainState state;
  Identity identity;
};
/// Throws Error(not_found) or Error(corrupt) naming the file.
CheckpointInfo open_checkpoint(const std::string& folder);

/// What --resume_from_checkpoint names: a folder as it is, or for "latest", "true" and "auto" the newest whole checkpoint of output_dir;
/// damaged ones are warned about and passed over. None for "auto" without any; else Error(not_found).
std::optional<CheckpointInfo> find_checkpoint(const std::string& resume_from, const std::string& output_dir);

/// Copies the tensors of a checkpoint into the given ones. Throws Error(corrupt|invalid_argument) naming the tensor.
void load_weights(const std::string& folder, const models::ModelConfig& config, const models::Parameters& parameters);
void load_moments(const std::string& folder, const models::Parameters& first, const models::Parameters& second);

/// Copies the files of a tokenizer into a folder, each whole or not at all.
void copy_tokenizer(const text::Tokenizer& tokenizer, const std::string& folder);

}  // namespace muster::train
