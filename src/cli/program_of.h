// The programs of a model as the verbs `compile` and `explain` name them: the same graphs that train, eval, predict and serve build.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"
#include "models/config.h"

namespace CLI {
class App;  // CLI11
}

namespace muster::cli {

struct NamedProgram {
  std::string name;  // infer, evaluate, train: as reports and dumps call them
  graph::Graph graph;
};

/// What a run of `predict`, `serve` (classification) or `fill-mask` (masked_lm) starts and, with `train`, what a run of `train` does, its
/// training program last. Labels are the config's; the config's head is the task's (with_head).
std::vector<NamedProgram> programs_of(const models::ModelConfig& config, bool train, double label_smoothing);

/// The config with a head for the task (auto: as it is); next_sentence: auto (as the config has it; of one that has no language model's
/// head, where the family has it), true, false. Throws Error(usage) for a next-sentence head where there is none.
models::ModelConfig with_head(models::ModelConfig config, const std::string& task, const std::string& next_sentence);
/// --task and --next_sentence, as with_head takes them.
void declare_task_flags(CLI::App& app, std::string& task, std::string& next_sentence);

/// What --config_name says: a named config, or a FILE.json.
models::ModelConfig config_named(const std::string& config_name);

/// The config of a model folder or model.tar.gz, or config_named. Throws Error(usage) unless exactly one is given.
models::ModelConfig config_of(const std::string& model, const std::string& config_name);

}  // namespace muster::cli
