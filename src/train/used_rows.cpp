#include "train/used_rows.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace muster::train {
namespace {
constexpr const char* kWordTable = "embeddings.word.weight";
}

UsedRows::UsedRows(data::TokenizedDataset& dataset, const models::ModelConfig& config, const models::Parameters& parameters)
    : config_(config), small_(parameters), used_(static_cast<size_t>(config.vocab_size)) {
  const auto table = parameters.find(kWordTable);
  MUSTER_ASSERT(table != parameters.end());
  whole_table_ = table->second;
  for (const int32_t id : dataset.tokens.ids) {
    if (id < 0 || id >= config.vocab_size)
      throw Error(ErrorKind::invalid_argument,
                  "token id {} is not below the model's vocab_size {}; do tokenizer and model belong together?", id, config.vocab_size);
    used_[static_cast<size_t>(id)] = 1;
  }
  std::vector<int32_t> small_of(used_.size());
  for (size_t id = 0; id < used_.size(); ++id) {
    if (!used_[id]) continue;
    small_of[id] = static_cast<int32_t>(rows_.size());
    rows_.push_back(static_cast<int32_t>(id));
  }
  for (int32_t& id : dataset.tokens.ids) id = small_of[static_cast<size_t>(id)];
  config_.vocab_size = static_cast<int64_t>(rows_.size());
  small_table_ = Tensor(DType::f32, {config_.vocab_size, config_.hidden_size});
  small_[kWordTable] = small_table_;
  read_again();
}

void UsedRows::count_step(double learning_rate, double weight_decay) {
  // The same rounding as the update of the trained rows has: the rate reaches it as f32.
  const auto factor = static_cast<float>(1.0 - static_cast<double>(static_cast<float>(learning_rate)) * weight_decay);
  if (factor != 1.0f) decays_.push_back(factor);
}

void UsedRows::write_back(ThreadPool& threads) {
  const auto width = static_cast<size_t>(config_.hidden_size);
  const auto whole = whole_table_.as<float>(), small = small_table_.as<float>();
  for (size_t i = 0; i < rows_.size(); ++i)
    std::memcpy(&whole[static_cast<size_t>(rows_[i]) * width], &small[i * width], width * sizeof(float));
  if (decays_.empty()) return;
  threads.parallel_for(static_cast<int64_t>(used_.size()), [&](int64_t row) {
    if (used_[static_cast<size_t>(row)]) return;
    const auto values = whole.subspan(static_cast<size_t>(row) * width, width);
    for (const float factor : decays_)
      for (float& x : values) x *= factor;
  });
  decays_.clear();
}

void UsedRows::read_again() {
  const auto width = static_cast<size_t>(config_.hidden_size);
  const auto whole = whole_table_.as<float>(), small = small_table_.as<float>();
  for (size_t i = 0; i < rows_.size(); ++i)
    std::memcpy(&small[i * width], &whole[static_cast<size_t>(rows_[i]) * width], width * sizeof(float));
  decays_.clear();
}

}  // namespace muster::train
