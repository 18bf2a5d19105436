// muster eval: a fine-tuned model on a labelled split: metrics, and predictions into a file.
#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

#include "cli/support.h"
#include "cli/verbs.h"
#include "core/log.h"
#include "data/prepare.h"
#include "data/shard.h"
#include "models/weights.h"
#include "storage/file.h"
#include "text/tokenizer.h"
#include "train/evaluate.h"
#include "train/pretraining.h"
#include "train/report.h"

namespace muster::cli {
namespace {

struct Flags {
  EngineFlags engine;
  data::ReadOptions read;
  std::string model, data, objective = "classification", format = "auto", normalize = "none", output_file, task;
  int64_t batch_size = 32;
  int max_seq_length = 0;
  bool json = false, as_numbers = false;
};

/// Held-out shards: loss, perplexity, accuracies.
int run_masked_lm(const Flags& flags) {
  const std::atomic<bool>& stop = install_stop_flag();
  const ModelSource source(flags.model);
  const models::ModelConfig config = models::read_config(source.folder());
  if (config.head == models::Head::classification)
    throw Error(ErrorKind::invalid_argument, "{}: a {}, not a masked language model", flags.model, models::architecture_of(config));
  const text::Tokenizer tokenizer = text::Tokenizer::load(source.folder());
  models::LoadReport report;
  const models::Parameters parameters = models::load_parameters(source.folder(), config, {}, report);
  if (!report.initialised.empty())
    throw Error(ErrorKind::invalid_argument, "{}: the weights have no {}: this is no trained language model", flags.model,
                report.initialised.front());
  data::PretrainingLoaderOptions options;
  options.files = data::list_shards(flags.data, flags.read.split);
  options.batch_size = flags.batch_size, options.shuffle = false;
  options.masking = data::masking_of(tokenizer);
  options.masking.vocab_size = std::min(tokenizer.vocab_size(), config.vocab_size);
  options.max_seq_length = config.max_tokens();
  data::PretrainingLoader loader(options);
  ThreadPool threads(flags.engine.thread_count());
  train::PretrainingEvaluator evaluator(config, parameters, flags.engine.runtime(), threads);
  const auto e = evaluator.run(loader, &stop);
  if (!e) return stop_exit_code();
  if (flags.json) {
    std::cout << fmt::format(
        "{{\"sequences\":{},\"masked\":{},\"seconds\":{:.3f},\"mlm_loss\":{:.6f},\"perplexity\":{:.4f},\"mlm_accuracy\":{:.6f}",
        e->sequences, e->masked, e->seconds, e->mlm_loss, e->perplexity, e->mlm_accuracy);
    if (e->nsp_loss) std::cout << fmt::format(",\"nsp_loss\":{:.6f},\"nsp_accuracy\":{:.6f}", *e->nsp_loss, *e->nsp_accuracy);
    std::cout << "}\n";
    return 0;
  }
  std::cout << fmt::format("{} sequences, {} masked words\nmlm loss      {:.4f}\nperplexity    {:.2f}\nmlm accuracy  {:.4f}\n",
                           e->sequences, e->masked, e->mlm_loss, e->perplexity, e->mlm_accuracy);
  if (e->nsp_loss) std::cout << fmt::format("nsp loss      {:.4f}\nnsp accuracy  {:.4f}\n", *e->nsp_loss, *e->nsp_accuracy);
  return 0;
}

int run(Flags& flags) {
  if (flags.objective == "masked_lm") return run_masked_lm(flags);
  if (flags.as_numbers && flags.output_file.empty()) throw Error(ErrorKind::usage, "--output_numbers needs --output_file");
  if (!flags.task.empty() && train::tweeteval_task(flags.task) != flags.task)
    throw Error(ErrorKind::usage, "--tweeteval_task {}: have emoji, emotion, hate, irony, offensive, sentiment, stance", flags.task);
  const std::atomic<bool>& stop = install_stop_flag();
  const ModelSource source(flags.model);
  const models::ModelConfig config = models::read_config(source.folder());
  flags.read.format = data::parse_format(flags.format);
  flags.read.normalize = data::parse_normalization(flags.normalize);
  flags.read.label_names = config.labels;
  const data::Dataset dataset = data::read_dataset(flags.data, flags.read);
  const text::Tokenizer tokenizer = text::Tokenizer::load(source.folder());
  models::LoadReport report;
  const models::Parameters parameters = models::load_parameters(source.folder(), config, {}, report);
  if (!report.initialised.empty())
    throw Error(ErrorKind::invalid_argument, "{}: the weights have no {}: run `muster train` first", flags.model,
                report.initialised.front());

  if (!flags.output_file.empty())
    const storage::AtomicFile writable(flags.output_file, "predictions");  // better known before the work than after
  ThreadPool threads(flags.engine.thread_count());
  int limit = static_cast<int>(config.max_tokens());
  if (const auto own = tokenizer.model_max_length()) limit = std::min(limit, *own);
  if (flags.max_seq_length > 0) limit = std::min(limit, flags.max_seq_length);
  train::Evaluator evaluator(config, parameters, flags.engine.runtime(), threads);
  const auto evaluation = evaluator.run(data::tokenize(dataset, tokenizer, limit, threads), flags.batch_size, &stop);
  if (!evaluation) return stop_exit_code();
  if (!flags.output_file.empty()) train::write_predictions(flags.output_file, *evaluation, config.labels, flags.as_numbers);
  const std::string task = flags.task.empty() ? train::tweeteval_task(flags.data) : flags.task;
  if (flags.json)
    std::cout << train::metrics_json(*evaluation, config.labels, task) << "\n";
  else
    std::cout << train::metrics_table(*evaluation, config.labels, task);
  return 0;
}

}  // namespace

std::function<int()> declare_eval(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  flags->read.split = "test";
  app.add_option("--model", flags->model, "model folder or model.tar.gz")->required();
  app.add_option("--data", flags->data, "TweetEval folder, folder of {train,val,test}.{csv,tsv,jsonl}, or one file")->required();
  app.add_option("--task", flags->objective, "classification, or masked_lm on shards of `muster data prepare`")
      ->check(CLI::IsMember({"classification", "masked_lm"}))
      ->capture_default_str();
  app.add_option("--split", flags->read.split, "train, val or test")->capture_default_str();
  app.add_option("--format", flags->format, "auto, tweeteval, csv, tsv, jsonl or text")->capture_default_str();
  app.add_option("--text_column", flags->read.text_column, "column or key of the text")->capture_default_str();
  app.add_option("--text_pair_column", flags->read.text_pair_column, "column or key of a second text");
  app.add_option("--label_column", flags->read.label_column, "column or key of the label")->capture_default_str();
  app.add_flag_callback("--no_quotes", [flags] { flags->read.quotes = false; }, "CSV and TSV: a double quote is a character like others");
  app.add_flag("--skip_bad_rows", flags->read.skip_bad_rows, "leave bad rows out, count and print them");
  app.add_option("--normalize", flags->normalize, "tweet clean-up: none, timelms or model_card")->capture_default_str();
  app.add_option("--per_device_eval_batch_size", flags->batch_size, "texts a batch")->check(CLI::Range(1, 65536))->capture_default_str();
  app.add_option("--max_seq_length", flags->max_seq_length, "cut texts to this many tokens; 0: as long as the model takes")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--tweeteval_task", flags->task, "also give TweetEval's metric of this task (default: by the name of the folder)");
  app.add_option("--output_file", flags->output_file, "write one predicted label a line");
  app.add_flag("--output_numbers", flags->as_numbers, "with --output_file: numbers instead of names, as TweetEval's script wants");
  app.add_flag("--json", flags->json, "print the metrics as one JSON object");
  declare_engine_flags(app, flags->engine);
  return [flags] { return run(*flags); };
}

}  // namespace muster::cli
