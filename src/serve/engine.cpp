#include "serve/engine.h"

#include <algorithm>
#include <filesystem>

#include "models/classifier.h"
#include "models/inputs.h"
#include "models/weights.h"
#include "runtime/backends.h"
#include "text/tokenizer.h"

namespace muster::serve {
namespace {

class Engine final : public Model {
 public:
  Engine(const std::string& folder, const EngineOptions& options, ThreadPool& threads)
      : config_(models::read_config(folder)), tokenizer_(text::Tokenizer::load(folder)), session_(compile(folder, options, threads)) {
    info_.name = std::filesystem::weakly_canonical(folder).filename().string();
    info_.model_type = config_.model_type;
    info_.labels = config_.labels;
    info_.vocab_size = config_.vocab_size;
    info_.precision = runtime::resolve_precision(options.runtime).precision == runtime::Precision::bf16 ? "bf16" : "f32";
    info_.max_length = static_cast<int32_t>(config_.max_tokens());
    if (const auto limit = tokenizer_.model_max_length()) info_.max_length = std::min(info_.max_length, *limit);
    if (options.max_length > 0) info_.max_length = std::min(info_.max_length, options.max_length);
    if (config_.problem_type == models::ProblemType::multi_label || config_.num_labels() == 1)
      info_.score_function = ScoreFunction::sigmoid;
    if (config_.problem_type == models::ProblemType::regression) info_.score_function = ScoreFunction::none;
    if (tokenizer_.vocab_size() > config_.vocab_size)
      throw Error(ErrorKind::invalid_argument,
                  "{}: the tokenizer has {} ids, the embedding table {} rows: the files are of different models", folder,
                  tokenizer_.vocab_size(), config_.vocab_size);
  }

  [[nodiscard]] const ModelInfo& info() const override { return info_; }

  [[nodiscard]] TokenizedText tokenize(std::string_view text, const TokenizeOptions& options) const override {
    TokenizedText result;
    const int32_t limit = options.max_length > 0 ? std::min(options.max_length, info_.max_length) : info_.max_length;
    tokenizer_.encode_ids(text, 0, result.ids);
    if (static_cast<int32_t>(result.ids.size()) <= limit) return result;
    if (!options.truncate)
      throw Error(ErrorKind::too_large, "the text has {} tokens, the limit is {}: shorten it, or leave truncation on", result.ids.size(),
                  limit);
    result.ids.clear();
    tokenizer_.encode_ids(text, limit, result.ids);
    result.truncated = true;
    return result;
  }

  std::vector<float> run(const text::TokenBatch& batch) override {
    const runtime::TensorMap& outputs = session_.run(models::make_inputs(config_, batch.ids, batch.type_ids, batch.cu_seqlens));
    const auto logits = outputs.at("logits").as<float>();
    return {logits.begin(), logits.end()};
  }

 private:
  runtime::Session compile(const std::string& folder, const EngineOptions& options, ThreadPool& threads) const {
    models::LoadReport report;
    const models::Parameters parameters = models::load_parameters(folder, config_, {}, report);
    if (!report.initialised.empty())
      throw Error(ErrorKind::invalid_argument, "{}: the weights have no {}: this is not a fine-tuned classifier; run `muster train` first",
                  folder, report.initialised.front());
    return {runtime::compile(models::build_classifier(config_), named(options.runtime, "infer"), threads), parameters};
  }

  models::ModelConfig config_;
  text::Tokenizer tokenizer_;
  runtime::Session session_;
  ModelInfo info_;
};

}  // namespace

std::unique_ptr<Model> load_engine(const std::string& folder, const EngineOptions& options, ThreadPool& threads) {
  return std::make_unique<Engine>(folder, options, threads);
}

}  // namespace muster::serve
