// The programs of a model as the verbs `compile` and `explain` name them: the same graphs that train, eval, predict and serve build.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"
#include "models/config.h"

namespace muster::cli {

struct NamedProgram {
  std::string name;  // infer, train
  graph::Graph graph;
};

/// `train`: the training program too. Labels are the config's.
/// Throws Error(usage) for an unknown task.
std::vector<NamedProgram> programs_of(const models::ModelConfig& config, const std::string& task, bool train, double label_smoothing);

/// What --config_name says: a named config, or a FILE.json.
models::ModelConfig config_named(const std::string& config_name);

/// The config of a model folder or model.tar.gz, or config_named. Throws Error(usage) unless exactly one is given.
models::ModelConfig config_of(const std::string& model, const std::string& config_name);

}  // namespace muster::cli
