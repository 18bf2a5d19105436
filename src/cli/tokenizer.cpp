// muster tokenizer train: a vocabulary from text.
#include <CLI/CLI.hpp>

#include <chrono>
#include <iostream>
#include <memory>

#include "cli/support.h"
#include "cli/verbs.h"
#include "core/log.h"
#include "core/threads.h"
#include "data/documents.h"
#include "text/train_tokenizer.h"

namespace muster::cli {
namespace {

struct Flags {
  text::TrainTokenizerOptions options;
  std::vector<std::string> files;
  std::string type = "wordpiece", output, text_column = "text";
  int threads = 0;
  bool json = false;
};

int run(Flags& f, bool vocab_size_given) {
  const std::atomic<bool>& stop = install_stop_flag();
  if (f.type == "bpe") {
    f.options.type = text::TokenizerType::bpe;
    if (f.options.cased) throw Error(ErrorKind::usage, "--cased is for wordpiece: byte-level BPE always keeps case");
    if (!vocab_size_given) f.options.vocab_size = 50265;
  }
  EngineFlags engine;
  engine.threads = f.threads;
  ThreadPool threads(engine.thread_count());
  const auto started = std::chrono::steady_clock::now();
  size_t bytes = 0;
  const text::TrainedTokenizer r = text::train_tokenizer(
      [&](const std::function<void(std::string_view)>& add) {
        data::for_each_text(f.files, f.text_column, [&](std::string_view text, bool) { add(text), bytes += text.size(); });
      },
      f.options, f.output, threads, &stop, [](const std::string& line) { log_info("{}", line); });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (r.tokens < f.options.vocab_size)
    log_info("{} tokens instead of {}: no pair of pieces is left that occurs {} times", r.tokens, f.options.vocab_size,
             f.options.min_frequency);
  if (f.json)
    std::cout << fmt::format(
        "{{\"output\":{},\"bytes\":{},\"words\":{},\"distinct_words\":{},\"vocab_size\":{},\"merges\":{},\"seconds\":{:.3f}}}\n",
        json_string(f.output), bytes, r.words, r.distinct_words, r.tokens, r.merges, seconds);
  else
    std::cout << fmt::format("{}: {} tokens, from {:.1f} MB of text with {} words ({} distinct), in {:.1f} s\n", f.output, r.tokens,
                             static_cast<double>(bytes) / 1e6, r.words, r.distinct_words, seconds);
  return 0;
}

}  // namespace

std::function<int()> declare_tokenizer_train(CLI::App& app) {
  auto f = std::make_shared<Flags>();
  app.add_option("files,--input", f->files, "files and folders: text, or .csv, .tsv and .jsonl; -: standard input")->required();
  app.add_option("--type", f->type, "wordpiece: as BERT's; bpe: byte-level, as RoBERTa's")
      ->check(CLI::IsMember({"wordpiece", "bpe"}))
      ->capture_default_str();
  CLI::Option* size = app.add_option("--vocab_size", f->options.vocab_size, "tokens in all, special ones included (bpe: 50265)")
                          ->check(CLI::Range(1, 2'000'000))
                          ->capture_default_str();
  app.add_option("--output", f->output, "folder of the tokenizer, new")->required();
  app.add_option("--min_frequency", f->options.min_frequency, "pieces that occur together more rarely are not joined")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--limit_alphabet", f->options.limit_alphabet, "wordpiece: keep so many characters, the commonest; 0: all")
      ->check(CLI::Range(0, 2'000'000))
      ->capture_default_str();
  app.add_flag("--cased", f->options.cased, "wordpiece: keep case and accents");
  app.add_option("--special_tokens", f->options.special_tokens, "more special tokens, after the usual five")->delimiter(',');
  app.add_option("--model_max_length", f->options.max_length, "longest sequence of the model, in tokens")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--text_column", f->text_column, "column or key of the text in tables")->capture_default_str();
  app.add_option("--threads", f->threads, "threads; 0: every core. The result does not depend on it")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_flag("--json", f->json, "print the result as one JSON object");
  return [f, size] { return run(*f, size->count() > 0); };
}

}  // namespace muster::cli
