// Labelled texts as an objective: token ids made once, batches by the loader, cross entropy; only the used rows of the word table are
// trained.
#include <algorithm>
#include <chrono>
#include <limits>

#include "core/error.h"
#include "core/log.h"
#include "data/loader.h"
#include "train/evaluate.h"
#include "train/identity.h"
#include "train/objective.h"
#include "train/task.h"
#include "train/used_rows.h"

namespace muster::train {
namespace {

/// --max_seq_length, no longer than the position table and what the tokenizer's folder says.
int sequence_length(const TrainingArguments& a, const models::ModelConfig& config, const text::Tokenizer& tokenizer) {
  int64_t length =
      std::min(config.max_tokens(), static_cast<int64_t>(tokenizer.model_max_length().value_or(std::numeric_limits<int>::max())));
  if (a.max_seq_length > length) log_warning("--max_seq_length {} is more than the model takes: {} is used", a.max_seq_length, length);
  if (a.max_seq_length > 0) length = std::min(length, a.max_seq_length);
  const int least = tokenizer.special_tokens_added() + 1;
  if (length < least)
    throw Error(ErrorKind::usage, "--max_seq_length {}: needs at least {} for the special tokens and one more", length, least);
  return static_cast<int>(length);
}

void check_data(const TrainInputs& in) {
  MUSTER_ASSERT(in.tokenizer && in.train);
  if (in.train->size() == 0) throw Error(ErrorKind::invalid_argument, "the training data has no rows");
  if (!in.train->has_labels()) throw Error(ErrorKind::invalid_argument, "the training data has no labels");
  if (in.eval && !in.eval->has_labels()) throw Error(ErrorKind::invalid_argument, "the evaluation data has no labels");
  for (const data::Dataset* dataset : {in.train, in.eval}) {
    if (!dataset) continue;
    for (size_t row = 0; row < dataset->labels.size(); ++row)
      if (dataset->labels[row] >= in.config.num_labels())
        throw Error(ErrorKind::invalid_argument, "{}: label {}, but the model has {} labels", dataset->where(row), dataset->labels[row],
                    in.config.num_labels());
  }
  if (in.tokenizer->vocab_size() > in.config.vocab_size)
    throw Error(ErrorKind::invalid_argument, "the tokenizer has {} tokens, the model's embedding table {}: they do not belong together",
                in.tokenizer->vocab_size(), in.config.vocab_size);
}

class Classification final : public Objective {
 public:
  Classification(const TrainingArguments& arguments, const TrainInputs& inputs, ThreadPool& threads)
      : arguments_(arguments), inputs_(inputs), threads_(threads) {
    check_data(inputs);
    class_weights_ = class_weights(arguments, inputs.train->labels, inputs.config.num_labels());
    const int length = sequence_length(arguments, inputs.config, *inputs.tokenizer);
    train_ = data::tokenize(*inputs.train, *inputs.tokenizer, length, threads);
    if (arguments.eval_strategy != Strategy::no) eval_ = data::tokenize(*inputs.eval, *inputs.tokenizer, length, threads);
    if (train_.truncated > 0)
      log_info("{} of {} training texts are longer than {} tokens and were cut", train_.truncated, train_.rows(), length);
    data::LoaderOptions loader;
    loader.batch_size = arguments.per_device_train_batch_size;
    loader.group_by_length = arguments.group_by_length;
    loader.drop_last = arguments.dataloader_drop_last;
    loader.seed = static_cast<uint64_t>(arguments.data_seed.value_or(arguments.seed));
    loader_ = std::make_unique<data::Loader>(train_, loader);
  }

  [[nodiscard]] int64_t samples() const override { return train_.rows(); }
  [[nodiscard]] int64_t batches_per_epoch() const override { return loader_->batches_per_epoch(); }
  [[nodiscard]] std::string data_fingerprint() const override { return fingerprint(train_); }
  [[nodiscard]] std::string describe_data() const override {
    return fmt::format("examples = {}{}", train_.rows(), inputs_.eval ? fmt::format(", for evaluation = {}", inputs_.eval->size()) : "");
  }

  void compile(const models::ModelConfig& config, const runtime::Options& options) override {
    used_rows_ = std::make_unique<UsedRows>(train_, config, inputs_.parameters);
    task_ = std::make_unique<ClassificationTask>(used_rows_->config(), used_rows_->parameters(), arguments_.label_smoothing_factor, options,
                                                 threads_);
    if (arguments_.eval_strategy != Strategy::no) evaluator_ = std::make_unique<Evaluator>(config, inputs_.parameters, options, threads_);
  }

  [[nodiscard]] const models::Parameters& parameters() const override { return used_rows_->parameters(); }
  [[nodiscard]] const models::Parameters& gradients() const override { return task_->gradients(); }

  StepOutcome run(int64_t step) override {
    const auto start = std::chrono::steady_clock::now();
    const Window window = make_window(*loader_, used_rows_->config(), class_weights_, step, arguments_.gradient_accumulation_steps);
    rows_ = window.rows;
    StepOutcome outcome;
    outcome.tokens = window.tokens, outcome.samples = static_cast<int64_t>(window.rows.size());
    outcome.flops = models::training_flops(used_rows_->config(), window.size);
    outcome.data_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    outcome.loss = task_->run(window, static_cast<uint64_t>(arguments_.seed), step);
    return outcome;
  }

  [[nodiscard]] runtime::Session& session() override { return task_->session(); }
  [[nodiscard]] std::string last_rows() const override {
    constexpr size_t kShown = 16;
    std::string rows;
    for (size_t i = 0; i < std::min(kShown, rows_.size()); ++i)
      rows += (i ? ", " : "") + inputs_.train->where(static_cast<size_t>(rows_[i]));
    if (rows_.size() > kShown) rows += fmt::format(" and {} more", rows_.size() - kShown);
    return rows;
  }

  void updated(double learning_rate, double weight_decay) override {
    used_rows_->count_step(learning_rate, weight_decay);
    task_->parameters_changed();
  }
  void write_back() override { used_rows_->write_back(threads_); }
  void read_again() override {
    used_rows_->read_again();
    task_->parameters_changed();
    if (evaluator_) evaluator_->parameters_changed();
  }

  std::optional<Scalars> evaluate(const std::atomic<bool>* stop) override {
    write_back();
    evaluator_->parameters_changed();
    const auto evaluation = evaluator_->run(eval_, arguments_.per_device_eval_batch_size, stop);
    if (!evaluation) return std::nullopt;
    Scalars values{{"eval_loss", evaluation->loss}};
    for (const auto& [name, value] : scalars(evaluation->metrics)) values.emplace_back("eval_" + name, value);
    const double seconds = std::max(evaluation->seconds, 1e-9);
    values.emplace_back("eval_runtime", evaluation->seconds);
    values.emplace_back("eval_samples_per_second", static_cast<double>(evaluation->rows) / seconds);
    values.emplace_back("eval_steps_per_second", static_cast<double>(evaluation->batches) / seconds);
    return values;
  }

 private:
  const TrainingArguments& arguments_;
  const TrainInputs& inputs_;
  ThreadPool& threads_;
  data::TokenizedDataset train_, eval_;
  std::unique_ptr<data::Loader> loader_;
  std::vector<double> class_weights_;
  std::unique_ptr<UsedRows> used_rows_;  // what the steps train; inputs_.parameters, the whole model, follow before they are read
  std::unique_ptr<ClassificationTask> task_;
  std::unique_ptr<Evaluator> evaluator_;
  std::vector<int64_t> rows_;  // of the last step
};

}  // namespace

std::unique_ptr<Objective> make_classification(const TrainingArguments& arguments, const TrainInputs& inputs, ThreadPool& threads) {
  return std::make_unique<Classification>(arguments, inputs, threads);
}

}  // namespace muster::train
