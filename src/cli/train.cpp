// muster train: reads config, weights, tokenizer and texts, and hands them to train/trainer.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/program_of.h"
#include "cli/support.h"
#include "cli/verbs.h"
#include "core/log.h"
#include "data/prepare.h"
#include "data/shard.h"
#include "models/config.h"
#include "models/weights.h"
#include "storage/file.h"
#include "text/tokenizer.h"
#include "train/trainer.h"

namespace muster::cli {
namespace {

struct Flags {
  train::TrainingArguments arguments;
  data::ReadOptions read;
  std::string task = "classification", model, config_name, data, eval_split, next_sentence = "auto", format = "auto", normalize = "none",
              backend = "cpu", tokenizer, trace;
  CompilerFlags compiler;
  double mlm_probability = 0.15;
  int64_t max_predictions = 0, trace_steps = 10;
  bool json = false, remask = false, whole_word_mask = false, skip_bad_shards = false;
};

void declare_arguments(CLI::App& app, Flags& flags) {
  for (const train::ArgumentInfo& info : train::argument_table()) {
    const bool boolean = info.kind == train::ArgumentInfo::Kind::boolean;
    const auto set = [&flags, boolean, name = info.name](const std::string& value) {
      train::set_argument(flags.arguments, name, boolean && value.empty() ? "true" : value);
    };
    CLI::Option* option = app.add_option_function<std::string>("--" + info.name, set, info.help);
    option->group("Training (names and defaults of TrainingArguments)")->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    if (boolean) {
      option->expected(0, 1)->type_name("[true|false]");  // no default text: CLI11 would take it for a switch without a value
    } else {
      std::string choices;
      for (const std::string& choice : info.choices) choices += (choices.empty() ? "" : "|") + choice;
      using Kind = train::ArgumentInfo::Kind;
      option->default_str(info.default_text)
          ->type_name(!choices.empty()             ? choices
                      : info.kind == Kind::integer ? "INT"
                      : info.kind == Kind::number  ? "NUMBER"
                                                   : "TEXT");
    }
  }
}

void say_labels(const models::LoadReport& report) {
  if (!report.initialised.empty()) {
    std::string names;
    for (const std::string& name : report.initialised) names += (names.empty() ? "" : ", ") + name;
    log_info("initialised, not in the checkpoint: {}", names);
  }
  for (const std::string& name : report.unused) log_debug("unused tensor of the checkpoint: {}", name);
}

/// Overwriting an output folder begins by removing the model in it: that must not be the one to start from.
void keep_model_and_output_apart(const std::string& model, std::string output) {
  while (output.size() > 1 && output.back() == '/') output.pop_back();
  if (!storage::is_folder(model) || !storage::is_folder(output)) return;
  std::error_code ignored;
  const auto inner = std::filesystem::canonical(model, ignored), outer = std::filesystem::canonical(output, ignored);
  const bool inside = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
  if (inside) throw Error(ErrorKind::usage, "--output_dir {} holds the model to start from, {}; choose another folder", output, model);
}

/// Config, weights and how they came: from the model's folder, or from scratch.
void start_from(const Flags& flags, const text::Tokenizer& tokenizer, models::ModelConfig config, train::TrainInputs& inputs) {
  inputs.config = std::move(config);
  inputs.model_name = flags.model.empty() ? flags.config_name : flags.model;
  inputs.data_name = flags.data;
  inputs.tokenizer = &tokenizer;
  inputs.options.backend = flags.backend;
  flags.compiler.apply(inputs.options);
  inputs.trace = flags.trace, inputs.trace_steps = flags.trace_steps;
  const auto seed = static_cast<uint64_t>(flags.arguments.seed);
  if (flags.model.empty()) {
    inputs.config.vocab_size = std::max<int64_t>(tokenizer.vocab_size(), 1);
    if (const auto pad = tokenizer.pad_id()) inputs.config.pad_token_id = *pad;
    inputs.parameters = models::init_parameters(inputs.config, seed);
    return;
  }
  models::LoadReport report;
  inputs.parameters = models::load_parameters(flags.model, inputs.config, {seed, flags.arguments.ignore_mismatched_sizes}, report);
  say_labels(report);
}

models::ModelConfig starting_config(const Flags& flags) {
  return flags.model.empty() ? config_named(flags.config_name) : models::read_config(flags.model);
}

int train_and_tell(Flags& flags, train::TrainInputs inputs, const std::atomic<bool>& stop) {
  inputs.stop = &stop;
  EngineFlags engine;
  engine.threads = static_cast<int>(flags.arguments.threads);
  ThreadPool threads(engine.thread_count());
  const train::TrainResult result = train::train(flags.arguments, std::move(inputs), threads);
  if (result.outcome == train::Outcome::interrupted)
    log_info("stopped: {} is saved; the same command with --resume_from_checkpoint latest goes on", result.checkpoint);
  if (flags.json) {
    std::cout << "{\"output_dir\":" << json_string(flags.arguments.output_dir) << ",\"global_step\":" << result.global_step;
    for (const auto& [name, value] : result.summary) std::cout << ",\"" << name << "\":" << fmt::format("{}", value);
    if (result.best_metric) std::cout << ",\"best_metric\":" << fmt::format("{}", *result.best_metric);
    std::cout << ",\"interrupted\":" << (result.outcome == train::Outcome::interrupted ? "true" : "false") << "}\n";
  }
  return result.outcome == train::Outcome::interrupted ? stop_exit_code() : 0;
}

int run_classification(Flags& flags) {
  const std::atomic<bool>& stop = install_stop_flag();
  flags.read.format = data::parse_format(flags.format);
  flags.read.normalize = data::parse_normalization(flags.normalize);
  const bool has_eval = data::has_split(flags.data, flags.eval_split.empty() ? "val" : flags.eval_split, flags.read.format);
  train::validate(flags.arguments, has_eval);

  const data::Dataset train_set = data::read_dataset(flags.data, flags.read);
  data::Dataset eval_set;
  if (has_eval) {
    data::ReadOptions read = flags.read;
    read.split = flags.eval_split.empty() ? "val" : flags.eval_split, read.label_names = train_set.label_names;
    eval_set = data::read_dataset(flags.data, read);
  }
  const text::Tokenizer tokenizer = text::Tokenizer::load(flags.tokenizer.empty() ? flags.model : flags.tokenizer);
  models::ModelConfig config = starting_config(flags);
  models::set_labels(config, train_set.label_names);
  train::TrainInputs inputs;
  start_from(flags, tokenizer, std::move(config), inputs);
  inputs.train = &train_set;
  inputs.eval = has_eval ? &eval_set : nullptr;
  return train_and_tell(flags, std::move(inputs), stop);
}

/// Batch sizes that were published with a learning rate; another one is worth a word. Sources: NVIDIA's pretrain_config.sh, AWS's
/// run_dp_bert_large_hf_pretrain scripts.
void check_recipe(const train::TrainingArguments& a) {
  struct Recipe {
    double rate;
    int64_t batch;
    const char* name;
  };
  static constexpr Recipe kRecipes[]{{4e-4, 16384, "phase 1 with AdamW"},
                                     {6e-3, 65536, "phase 1 with LAMB"},
                                     {2.8e-4, 32768, "phase 2 with AdamW"},
                                     {4e-3, 32768, "phase 2 with LAMB"}};
  const int64_t batch = a.per_device_train_batch_size * a.gradient_accumulation_steps;
  for (const Recipe& r : kRecipes)
    if (a.learning_rate == r.rate && batch * 4 <= r.batch)
      log_warning(
          "--learning_rate {} is that of {}, published with {} sequences a step; this run has {}: with fewer, a lower rate is usual",
          a.learning_rate, r.name, r.batch, batch);
}

/// Whether the first shard that can be read has next-sentence labels.
bool any_next_labels(const std::vector<std::string>& files, bool skip_bad) {
  for (const std::string& file : files) {
    try {
      return data::has_next_labels(file);
    } catch (const Error&) {
      if (!skip_bad) throw;
    }
  }
  return false;
}

int run_masked_lm(Flags& flags) {
  const std::atomic<bool>& stop = install_stop_flag();
  const text::Tokenizer tokenizer = text::Tokenizer::load(flags.tokenizer.empty() ? flags.model : flags.tokenizer);
  train::TrainInputs::Pretraining shards;
  shards.shards.files = data::list_shards(flags.data, "train");
  if (flags.arguments.eval_strategy != train::Strategy::no)
    shards.eval_shards.files = data::list_shards(flags.data, flags.eval_split.empty() ? "test" : flags.eval_split);
  train::validate(flags.arguments, !shards.eval_shards.files.empty());
  check_recipe(flags.arguments);
  models::ModelConfig config = starting_config(flags);
  bool pairs = false;
  if (flags.next_sentence == "auto")
    pairs = config.family == models::Family::bert && any_next_labels(shards.shards.files, flags.skip_bad_shards);
  else
    pairs = flags.next_sentence == "true";
  if (pairs && config.family != models::Family::bert) throw Error(ErrorKind::usage, "--next_sentence true: only BERT has that head");
  config.head = pairs ? models::Head::pretraining : models::Head::masked_lm;
  for (data::PretrainingLoaderOptions* o : {&shards.shards, &shards.eval_shards}) {
    o->masking = data::masking_of(tokenizer);
    o->masking.probability = flags.mlm_probability, o->masking.max_predictions = flags.max_predictions,
    o->masking.whole_words = flags.whole_word_mask;
    o->skip_bad_shards = flags.skip_bad_shards;
    o->max_seq_length = flags.arguments.max_seq_length > 0 ? flags.arguments.max_seq_length : config.max_tokens();
  }
  shards.shards.remask = flags.remask;
  train::TrainInputs inputs;
  start_from(flags, tokenizer, std::move(config), inputs);
  shards.shards.masking.vocab_size = shards.eval_shards.masking.vocab_size = std::min(tokenizer.vocab_size(), inputs.config.vocab_size);
  inputs.pretraining = std::move(shards);
  return train_and_tell(flags, std::move(inputs), stop);
}

int run(Flags& flags) {
  if (flags.task != "classification" && flags.task != "masked_lm")
    throw Error(ErrorKind::usage, "--task {}: have classification, masked_lm", flags.task);
  if (flags.model.empty() == flags.config_name.empty())
    throw Error(ErrorKind::usage, "give either --model FOLDER (fine-tune) or --config_name NAME (from scratch, with --tokenizer FOLDER)");
  if (!flags.config_name.empty() && flags.tokenizer.empty())
    throw Error(ErrorKind::usage, "--config_name needs --tokenizer FOLDER with the vocabulary");
  if (flags.arguments.overwrite_output_dir) keep_model_and_output_apart(flags.model, flags.arguments.output_dir);
  return flags.task == "classification" ? run_classification(flags) : run_masked_lm(flags);
}

}  // namespace

std::function<int()> declare_train(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--task", flags->task,
                 "what is trained: classification of labelled texts, or masked_lm on shards of `muster data prepare`")
      ->capture_default_str();
  app.add_option("--model,--model_name_or_path", flags->model,
                 "Hugging Face folder to start from: config.json, model.safetensors, tokenizer files");
  app.add_option(
      "--config_name", flags->config_name,
      "instead of --model: train from scratch as tiny, minilm, bert-base, bert-large, roberta-base, distilbert-base, or FILE.json");
  app.add_option("--tokenizer,--tokenizer_name", flags->tokenizer, "folder of the tokenizer (default: the model's)");
  app.add_option("--data", flags->data,
                 "TweetEval folder, folder of {train,val,test}.{csv,tsv,jsonl}, or one file; masked_lm: folder of shards")
      ->required();
  app.add_option("--train_split", flags->read.split, "split to train on")->capture_default_str();
  app.add_option("--eval_split", flags->eval_split, "split to evaluate on while training, when it is there (default: val; test of shards)");
  app.add_option("--format", flags->format, "auto, tweeteval, csv, tsv, jsonl or text")->capture_default_str();
  app.add_option("--text_column", flags->read.text_column, "column or key of the text")->capture_default_str();
  app.add_option("--text_pair_column", flags->read.text_pair_column, "column or key of a second text");
  app.add_option("--label_column", flags->read.label_column, "column or key of the label")->capture_default_str();
  app.add_flag_callback("--no_quotes", [flags] { flags->read.quotes = false; }, "CSV and TSV: a double quote is a character like others");
  app.add_flag("--skip_bad_rows", flags->read.skip_bad_rows, "leave bad rows out, count and print them");
  app.add_option("--normalize", flags->normalize, "tweet clean-up: none, timelms or model_card")->capture_default_str();
  const auto language = [](CLI::Option* option) { option->group("Masked language modelling"); };
  language(app.add_option("--next_sentence", flags->next_sentence,
                          "predict whether the second segment follows: auto (BERT on shards with such labels), true or false")
               ->check(CLI::IsMember({"auto", "true", "false"}))
               ->capture_default_str());
  language(app.add_flag("--remask", flags->remask, "mask anew in each epoch, also shards that have masks"));
  language(app.add_option("--mlm_probability", flags->mlm_probability, "share of words masked on reading")
               ->check(CLI::Range(0.0, 0.9))
               ->capture_default_str());
  language(app.add_option("--max_predictions", flags->max_predictions, "masked words of a sequence on reading, at most; 0: no limit")
               ->check(CLI::Range(0, 65536))
               ->capture_default_str());
  language(app.add_flag("--whole_word_mask", flags->whole_word_mask, "mask all pieces of a word together, on reading"));
  language(app.add_flag("--skip_bad_shards", flags->skip_bad_shards, "leave shards out that cannot be read, count and print them"));
  app.add_option("--backend", flags->backend, "cpu, or ref (slow: the reference)")
      ->check(CLI::IsMember({"cpu", "ref"}))
      ->capture_default_str();
  app.add_flag("--json", flags->json, "print the result as one JSON object");
  app.add_option("--trace", flags->trace, "write a trace of steps, after the first one, for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE");
  app.add_option("--trace_steps", flags->trace_steps, "steps in the trace")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--config", "YAML file of flags; the command line wins")->type_name("FILE");
  declare_compiler_flags(app, flags->compiler);
  declare_arguments(app, *flags);
  return [flags] { return run(*flags); };
}

}  // namespace muster::cli
