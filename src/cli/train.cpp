// muster train: reads config, weights, tokenizer and texts, and hands them to train/trainer.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/support.h"
#include "cli/verbs.h"
#include "core/log.h"
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
  std::string task = "classification", model, config_name, data, eval_split = "val", format = "auto", normalize = "none", backend = "cpu",
              tokenizer;
  CompilerFlags compiler;
  bool json = false;
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

int run(Flags& flags) {
  if (flags.task != "classification") throw Error(ErrorKind::usage, "--task {}: have classification", flags.task);
  if (flags.model.empty() == flags.config_name.empty())
    throw Error(ErrorKind::usage, "give either --model FOLDER (fine-tune) or --config_name NAME (from scratch, with --tokenizer FOLDER)");
  if (!flags.config_name.empty() && flags.tokenizer.empty())
    throw Error(ErrorKind::usage, "--config_name needs --tokenizer FOLDER with the vocabulary");
  if (flags.arguments.overwrite_output_dir) keep_model_and_output_apart(flags.model, flags.arguments.output_dir);
  const std::atomic<bool>& stop = install_stop_flag();
  flags.read.format = data::parse_format(flags.format);
  flags.read.normalize = data::parse_normalization(flags.normalize);
  const bool has_eval = data::has_split(flags.data, flags.eval_split, flags.read.format);
  train::validate(flags.arguments, has_eval);

  const data::Dataset train_set = data::read_dataset(flags.data, flags.read);
  data::Dataset eval_set;
  if (has_eval) {
    data::ReadOptions read = flags.read;
    read.split = flags.eval_split, read.label_names = train_set.label_names;
    eval_set = data::read_dataset(flags.data, read);
  }

  train::TrainInputs inputs;
  inputs.config = flags.model.empty() ? models::named_config(flags.config_name) : models::read_config(flags.model);
  models::set_labels(inputs.config, train_set.label_names);
  const text::Tokenizer tokenizer = text::Tokenizer::load(flags.tokenizer.empty() ? flags.model : flags.tokenizer);
  if (flags.model.empty()) {
    inputs.config.vocab_size = std::max<int64_t>(tokenizer.vocab_size(), 1);
    inputs.parameters = models::init_parameters(inputs.config, static_cast<uint64_t>(flags.arguments.seed));
  } else {
    models::LoadReport report;
    inputs.parameters = models::load_parameters(
        flags.model, inputs.config, {static_cast<uint64_t>(flags.arguments.seed), flags.arguments.ignore_mismatched_sizes}, report);
    say_labels(report);
  }
  inputs.model_name = flags.model.empty() ? flags.config_name : flags.model;
  inputs.data_name = flags.data;
  inputs.tokenizer = &tokenizer;
  inputs.train = &train_set;
  inputs.eval = has_eval ? &eval_set : nullptr;
  inputs.options.backend = flags.backend;
  flags.compiler.apply(inputs.options);
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

}  // namespace

std::function<int()> declare_train(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--task", flags->task, "what is trained: classification")->capture_default_str();
  app.add_option("--model,--model_name_or_path", flags->model,
                 "Hugging Face folder to start from: config.json, model.safetensors, tokenizer files");
  app.add_option("--config_name", flags->config_name,
                 "instead of --model: train from scratch as tiny, minilm, bert-base, roberta-base or distilbert-base");
  app.add_option("--tokenizer,--tokenizer_name", flags->tokenizer, "folder of the tokenizer (default: the model's)");
  app.add_option("--data", flags->data, "TweetEval folder, folder of {train,val,test}.{csv,tsv,jsonl}, or one file")->required();
  app.add_option("--train_split", flags->read.split, "split to train on")->capture_default_str();
  app.add_option("--eval_split", flags->eval_split, "split to evaluate on while training, when it is there")->capture_default_str();
  app.add_option("--format", flags->format, "auto, tweeteval, csv, tsv, jsonl or text")->capture_default_str();
  app.add_option("--text_column", flags->read.text_column, "column or key of the text")->capture_default_str();
  app.add_option("--text_pair_column", flags->read.text_pair_column, "column or key of a second text");
  app.add_option("--label_column", flags->read.label_column, "column or key of the label")->capture_default_str();
  app.add_flag_callback("--no_quotes", [flags] { flags->read.quotes = false; }, "CSV and TSV: a double quote is a character like others");
  app.add_flag("--skip_bad_rows", flags->read.skip_bad_rows, "leave bad rows out, count and print them");
  app.add_option("--normalize", flags->normalize, "tweet clean-up: none, timelms or model_card")->capture_default_str();
  app.add_option("--backend", flags->backend, "cpu, or ref (slow: the reference)")
      ->check(CLI::IsMember({"cpu", "ref"}))
      ->capture_default_str();
  app.add_flag("--json", flags->json, "print the result as one JSON object");
  app.add_option("--config", "YAML file of flags; the command line wins")->type_name("FILE");
  declare_compiler_flags(app, flags->compiler);
  declare_arguments(app, *flags);
  return [flags] { return run(*flags); };
}

}  // namespace muster::cli
