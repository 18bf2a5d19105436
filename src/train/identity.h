// What makes two runs the same run: everything that decides the bits of the result. A checkpoint is resumed only by the run it is from.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "data/tokenize.h"
#include "models/config.h"
#include "models/weights.h"
#include "train/arguments.h"

namespace muster::train {

/// By name: each argument that changes the result, "model" (config and starting weights), "training data", "precision", "instruction set".
using Identity = std::map<std::string, std::string>;

/// `parameters`: before training. data: fingerprint of the training data. precision, isa: as resolved on this machine.
Identity identity_of(const TrainingArguments& arguments, const models::ModelConfig& config, const models::Parameters& parameters,
                     int64_t rows, const std::string& data, const std::string& precision, const std::string& isa);

/// SHA-256 over the names, shapes and bytes of all parameters.
std::string fingerprint(const models::Parameters& parameters);
/// SHA-256 over token ids, types, row borders and labels.
std::string fingerprint(const data::TokenizedDataset& dataset);

/// One line a difference: "learning_rate was 5e-05, is 0.0001". Empty when a resumed run would go on exactly. The instruction set is not
/// compared here: another one changes the last bits only, which the caller warns about.
std::vector<std::string> differences(const Identity& saved, const Identity& now);

}  // namespace muster::train
