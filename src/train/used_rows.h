// Only the tokens that occur in the training data ever get a gradient, and these are known before the first step. So a run trains a small
// word table with their rows alone: the rest of the vocabulary (two thirds of it and more in fine-tuning) costs neither gradient, nor norm,
// nor moments, nor update. Exact: a row that never has a gradient has zero moments, and all AdamW does to it is its decay, made up for
// here.
#pragma once
#include <cstdint>
#include <vector>

#include "core/threads.h"
#include "data/tokenize.h"
#include "models/config.h"
#include "models/weights.h"

namespace muster::train {

class UsedRows {
 public:
  /// Renumbers the ids of `dataset` by the rows of the small table. `parameters` stay the whole model's; their memory is shared.
  UsedRows(data::TokenizedDataset& dataset, const models::ModelConfig& config, const models::Parameters& parameters);

  /// The model that is trained: the config's vocabulary is the used part; all tensors but the word table are those of the whole model.
  [[nodiscard]] const models::ModelConfig& config() const { return config_; }
  [[nodiscard]] const models::Parameters& parameters() const { return small_; }

  /// Notes one optimizer step, for the rows that are not trained.
  void count_step(double learning_rate, double weight_decay);
  /// Brings the whole model up to date: the trained rows, and the decay of the others since the last call.
  void write_back(ThreadPool& threads);
  /// Takes the trained rows from the whole model again, after its weights were loaded.
  void read_again();

 private:
  models::ModelConfig config_;
  models::Parameters small_;
  Tensor whole_table_, small_table_;
  std::vector<int32_t> rows_;  // of the whole table, rising: row i of the small one is rows_[i]
  std::vector<uint8_t> used_;  // by row of the whole table
  std::vector<float> decays_;  // factors of the steps since the last write_back
};

}  // namespace muster::train
