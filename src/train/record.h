// One line of the log of a run: what happened at a step. Written to metrics.jsonl, TensorBoard, trainer_state.json and the terminal alike.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace muster::train {

struct Record {
  int64_t step = 0;
  double epoch = 0;
  /// Names as the Transformers Trainer logs them: loss, grad_norm, learning_rate, eval_loss, eval_accuracy, train_runtime, ...
  std::vector<std::pair<std::string, double>> values;
};

}  // namespace muster::train
