#include "train/pretraining.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "autodiff/gradient.h"
#include "core/error.h"
#include "core/log.h"
#include "data/shard.h"
#include "models/flops.h"
#include "storage/sha256.h"
#include "train/objective.h"
#include "train/task.h"

namespace muster::train {

graph::Graph build_pretraining(const models::ModelConfig& config) {
  models::PretrainerOptions options;
  options.training = true;
  return with_gradients(models::build_pretrainer(config, options));
}

models::Inputs pretraining_inputs(const models::ModelConfig& config, const data::PretrainingBatch& batch, int64_t masked,
                                  int64_t sequences) {
  models::Inputs inputs = models::make_inputs(
      config, batch.tokens.ids, config.type_vocab_size > 1 ? std::span<const int32_t>(batch.tokens.type_ids) : std::span<const int32_t>(),
      batch.tokens.cu_seqlens);
  const auto weights = [](size_t n, int64_t total) {
    return std::vector<float>(n, total > 0 ? static_cast<float>(1.0 / static_cast<double>(total)) : 0.0f);
  };
  models::add_masks(inputs, config, batch.masked_positions, batch.masked_labels, weights(batch.masked_positions.size(), masked));
  if (config.head == models::Head::pretraining) {
    if (batch.next_sentence.size() != static_cast<size_t>(batch.tokens.sequences()))
      throw Error(ErrorKind::invalid_argument,
                  "the shards have no next-sentence labels, but the model predicts them: train it without (--next_sentence false)");
    models::add_next(inputs, batch.next_sentence, weights(batch.next_sentence.size(), sequences));
  }
  return inputs;
}

void PretrainingScores::add(const runtime::TensorMap& outputs, const data::PretrainingBatch& batch) {
  const auto of = [&](const char* name) { return outputs.find(name)->second.as<float>(); };
  mlm_loss += static_cast<double>(of("mlm_loss")[0]);
  const auto lse = of("mlm_lse"), losses = of("mlm_losses"), best = of("mlm_best");
  masked += static_cast<int64_t>(losses.size());
  // lse - loss is the logit of the label, but for a rounding.
  for (size_t p = 0; p < losses.size(); ++p) correct += lse[p] - losses[p] >= best[p] - 1e-5f * std::max(1.0f, std::abs(best[p]));
  sequences += batch.tokens.sequences();
  const auto next = outputs.find("next_logits");
  if (next == outputs.end()) return;
  nsp_loss += static_cast<double>(of("nsp_loss")[0]);
  const auto logits = next->second.as<float>();
  for (size_t s = 0; s < batch.next_sentence.size(); ++s)
    next_correct += (logits[2 * s + 1] > logits[2 * s]) == (batch.next_sentence[s] == 1);
}

PretrainingEvaluator::PretrainingEvaluator(models::ModelConfig config, const models::Parameters& parameters,
                                           const runtime::Options& options, ThreadPool& threads)
    : config_(std::move(config)),
      session_(std::make_unique<runtime::Session>(runtime::compile(models::build_pretrainer(config_), named(options, "evaluate"), threads),
                                                  parameters)) {}

std::optional<PretrainingEvaluation> PretrainingEvaluator::run(data::PretrainingLoader& loader, const std::atomic<bool>* stop) {
  const auto start = std::chrono::steady_clock::now();
  PretrainingScores scores;
  PretrainingEvaluation e;
  for (int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    if (stop && stop->load()) return std::nullopt;
    const data::PretrainingBatch batch = loader.batch(i);
    scores.add(session_->run(pretraining_inputs(config_, batch, 1, 1)), batch);  // sums, not means
    e.tokens += batch.tokens.tokens();
    ++e.batches;
  }
  const auto mean = [](double sum, int64_t n) { return n > 0 ? sum / static_cast<double>(n) : 0.0; };
  e.sequences = scores.sequences, e.masked = scores.masked;
  e.mlm_loss = mean(scores.mlm_loss, scores.masked);
  e.perplexity = std::exp(e.mlm_loss);
  e.mlm_accuracy = mean(static_cast<double>(scores.correct), scores.masked);
  if (config_.head == models::Head::pretraining) {
    e.nsp_loss = mean(scores.nsp_loss, scores.sequences);
    e.nsp_accuracy = mean(static_cast<double>(scores.next_correct), scores.sequences);
  }
  e.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return e;
}

namespace {

class Pretraining final : public Objective {
 public:
  Pretraining(const TrainingArguments& arguments, const TrainInputs& inputs, ThreadPool& threads)
      : arguments_(arguments), inputs_(inputs), threads_(threads) {
    data::PretrainingLoaderOptions options = inputs.pretraining->shards;
    options.batch_size = arguments.per_device_train_batch_size;
    options.seed = static_cast<uint64_t>(arguments.data_seed.value_or(arguments.seed));
    loader_ = std::make_unique<data::PretrainingLoader>(options);
    if (arguments.eval_strategy == Strategy::no) return;
    data::PretrainingLoaderOptions held_out = inputs.pretraining->eval_shards;
    held_out.batch_size = arguments.per_device_eval_batch_size;
    held_out.seed = options.seed;
    held_out.shuffle = false;
    eval_loader_ = std::make_unique<data::PretrainingLoader>(held_out);
  }

  [[nodiscard]] int64_t samples() const override { return loader_->sequences(); }
  [[nodiscard]] int64_t batches_per_epoch() const override { return loader_->batches_per_epoch(); }
  [[nodiscard]] std::string data_fingerprint() const override {
    // Names and sizes of the shards: reading all of a corpus only to name it would take longer than a resume may.
    std::string text;
    for (const std::string& file : loader_->files())
      text += fmt::format("{} {}\n", std::filesystem::path(file).filename().string(), data::shard_rows(file));
    const data::PretrainingLoaderOptions& o = inputs_.pretraining->shards;
    text += fmt::format("remask {} {} {} {}\n", o.remask, o.masking.probability, o.masking.max_predictions, o.masking.whole_words);
    return "sha256:" + storage::sha256_hex(text);
  }
  [[nodiscard]] std::string describe_data() const override {
    return fmt::format("sequences = {} in {} shards{}{}", loader_->sequences(), loader_->files().size(),
                       loader_->bad_shards() > 0 ? fmt::format(" ({} bad ones skipped)", loader_->bad_shards()) : "",
                       eval_loader_ ? fmt::format(", for evaluation = {}", eval_loader_->sequences()) : "");
  }

  void compile(const models::ModelConfig& config, const runtime::Options& options) override {
    config_ = config;
    session_ = std::make_unique<runtime::Session>(runtime::compile(build_pretraining(config), named(options, "train"), threads_),
                                                  inputs_.parameters);
    for (const auto& slot : session_->signature().parameters) {
      parameters_[slot.name] = inputs_.parameters.find(slot.name)->second;
      gradients_[slot.name] = Tensor(DType::f32, parameters_[slot.name].shape());
      outputs_["grad:" + slot.name] = gradients_[slot.name];
    }
    if (eval_loader_) evaluator_ = std::make_unique<PretrainingEvaluator>(config, inputs_.parameters, options, threads_);
  }

  [[nodiscard]] const models::Parameters& parameters() const override { return parameters_; }
  [[nodiscard]] const models::Parameters& gradients() const override { return gradients_; }

  StepOutcome run(int64_t step) override {
    const int64_t per_epoch = loader_->batches_per_epoch(), each = arguments_.gradient_accumulation_steps;
    const int64_t steps_per_epoch = (per_epoch + each - 1) / each;
    const int64_t epoch = step / steps_per_epoch, first = step % steps_per_epoch * each, last = std::min(first + each, per_epoch);
    const auto start = std::chrono::steady_clock::now();
    std::vector<data::PretrainingBatch> batches;
    int64_t masked = 0, sequences = 0;
    models::BatchSize size;
    StepOutcome outcome;
    rows_.clear();
    for (int64_t i = first; i < last; ++i) {
      batches.push_back(loader_->batch(epoch * per_epoch + i));
      masked += static_cast<int64_t>(batches.back().masked_positions.size());
      sequences += batches.back().tokens.sequences();
      outcome.tokens += batches.back().tokens.tokens();
      rows_.insert(rows_.end(), batches.back().rows.begin(), batches.back().rows.end());
      size.add(batches.back().tokens.cu_seqlens, static_cast<double>(batches.back().masked_positions.size()));
    }
    outcome.flops = models::training_flops(config_, size);
    outcome.data_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    PretrainingScores scores;
    session_->keep_packed(batches.size() > 1);
    for (size_t i = 0; i < batches.size(); ++i) {
      const models::Inputs inputs = pretraining_inputs(config_, batches[i], masked, sequences);
      const uint64_t seed = dropout_seed(static_cast<uint64_t>(arguments_.seed), step, static_cast<int64_t>(i));
      const auto& outputs = session_->run_into(inputs, outputs_, seed, i > 0);
      outcome.loss += static_cast<double>(outputs.find("loss")->second.as<float>()[0]);
      scores.add(outputs, batches[i]);
    }
    outcome.samples = sequences;
    outcome.parts = {{"mlm_loss", scores.mlm_loss}};
    if (config_.head == models::Head::pretraining) outcome.parts.emplace_back("nsp_loss", scores.nsp_loss);
    outcome.parts.emplace_back("mlm_accuracy", masked > 0 ? static_cast<double>(scores.correct) / static_cast<double>(masked) : 0);
    return outcome;
  }

  [[nodiscard]] runtime::Session& session() override { return *session_; }
  [[nodiscard]] std::string last_rows() const override {
    constexpr size_t kShown = 8;
    std::string text;
    for (size_t i = 0; i < std::min(kShown, rows_.size()); ++i)
      text += fmt::format("{}{}:{}", i ? ", " : "", loader_->files()[static_cast<size_t>(rows_[i].first)], rows_[i].second);
    if (rows_.size() > kShown) text += fmt::format(" and {} more", rows_.size() - kShown);
    return text;
  }

  void updated(double, double) override { session_->parameters_changed(); }
  void write_back() override {}  // the whole model is what is trained
  void read_again() override {
    session_->parameters_changed();
    if (evaluator_) evaluator_->parameters_changed();
  }

  std::optional<Scalars> evaluate(const std::atomic<bool>* stop) override {
    evaluator_->parameters_changed();
    const auto e = evaluator_->run(*eval_loader_, stop);
    if (!e) return std::nullopt;
    Scalars values{{"eval_loss", e->mlm_loss + e->nsp_loss.value_or(0)},
                   {"eval_mlm_loss", e->mlm_loss},
                   {"eval_perplexity", e->perplexity},
                   {"eval_mlm_accuracy", e->mlm_accuracy}};
    if (e->nsp_loss) values.emplace_back("eval_nsp_loss", *e->nsp_loss), values.emplace_back("eval_nsp_accuracy", *e->nsp_accuracy);
    values.emplace_back("eval_runtime", e->seconds);
    values.emplace_back("eval_samples_per_second", static_cast<double>(e->sequences) / std::max(e->seconds, 1e-9));
    return values;
  }

 private:
  const TrainingArguments& arguments_;
  const TrainInputs& inputs_;
  ThreadPool& threads_;
  std::unique_ptr<data::PretrainingLoader> loader_, eval_loader_;
  models::ModelConfig config_;
  models::Parameters parameters_, gradients_;
  runtime::TensorMap outputs_;
  std::unique_ptr<runtime::Session> session_;
  std::unique_ptr<PretrainingEvaluator> evaluator_;
  std::vector<std::pair<int32_t, int64_t>> rows_;  // of the last step
};

}  // namespace

std::unique_ptr<Objective> make_pretraining(const TrainingArguments& arguments, const TrainInputs& inputs, ThreadPool& threads) {
  return std::make_unique<Pretraining>(arguments, inputs, threads);
}

std::unique_ptr<Objective> make_objective(const TrainingArguments& arguments, const TrainInputs& inputs, ThreadPool& threads) {
  return inputs.pretraining ? make_pretraining(arguments, inputs, threads) : make_classification(arguments, inputs, threads);
}

}  // namespace muster::train
