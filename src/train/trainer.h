// A whole fine-tuning run: from a model and labelled texts to a finished model folder, with logs, evaluations and checkpoints on the way.
// Here: what goes in and what comes out. The parts have a file each, in the order a step uses them: schedule, task, gradient_norm,
// optimizer, evaluate, checkpoint; the loop itself is trainer.cpp.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/threads.h"
#include "data/dataset.h"
#include "data/pretraining_loader.h"
#include "models/config.h"
#include "models/weights.h"
#include "runtime/compile.h"
#include "text/tokenizer.h"
#include "train/arguments.h"
#include "train/record.h"

namespace muster::train {

/// What a run works on. The pointers outlive it.
struct TrainInputs {
  models::ModelConfig config;     // with the labels of the data (models::set_labels)
  models::Parameters parameters;  // where training starts; trained in place
  std::string model_name;         // for the model card
  std::string data_name;          // for the model card
  const text::Tokenizer* tokenizer = nullptr;
  /// Of masked language modelling: shards to train on and to evaluate on (options of the batches follow the arguments).
  struct Pretraining {
    data::PretrainingLoaderOptions shards, eval_shards;
  };
  std::optional<Pretraining> pretraining;  // else labelled texts:
  const data::Dataset* train = nullptr;
  const data::Dataset* eval = nullptr;  // null: no evaluation
  std::string trace;                    // file for a trace of steps (step_trace.h); empty: none
  int64_t trace_steps = 10;
  runtime::Options options;                      // backend, compile cache, passes; precision follows the arguments
  const std::atomic<bool>* stop = nullptr;       // set by a signal: save a checkpoint after the current step and return
  std::function<void(const Record&)> on_record;  // of each log record, after it was written
};

enum class Outcome {
  finished,
  stopped_early,  // no better evaluation for early_stopping_patience
  interrupted,    // by `stop`: a checkpoint was saved, there is no final model
};

struct TrainResult {
  Outcome outcome = Outcome::finished;
  int64_t global_step = 0;
  double epoch = 0;
  double train_loss = 0;   // mean over all steps, those before a resume too
  std::string checkpoint;  // when interrupted: where to go on from
  std::optional<double> best_metric;
  std::string best_checkpoint;                          // empty: none was saved at the best evaluation
  std::vector<std::pair<std::string, double>> summary;  // train_runtime, train_samples_per_second, train_tokens_per_second, ...
};

/// Trains and writes into arguments.output_dir: config.json, model.safetensors, the tokenizer's files, README.md, train_results.json,
/// trainer_state.json, metrics.jsonl, runs/ (TensorBoard) and checkpoint-<step>/ folders.
///
/// Same arguments, data, model and instruction set give the same bits, for any number of threads, resumed or not.
/// Throws Error(usage) for arguments that do not fit each other or the data; Error(invalid_argument) when output_dir holds another run,
/// a checkpoint belongs to another one, or loss or gradient become NaN or infinite (naming step, epoch and the batch's rows); Error(io).
TrainResult train(TrainingArguments arguments, TrainInputs inputs, ThreadPool& threads);

}  // namespace muster::train
