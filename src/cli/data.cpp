// muster data prepare, muster data inspect: text to shards of pre-training data, and what is in shards.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/support.h"
#include "cli/verbs.h"
#include "core/log.h"
#include "data/prepare.h"
#include "data/shard.h"

namespace muster::cli {
namespace {

struct PrepareFlags {
  data::PrepareOptions options;
  std::vector<std::string> inputs;
  std::string tokenizer, format = "pairs", masking = "static", documents = "blank_line", sentences = "split", text_column = "text";
  int threads = 0;
  bool json = false;
};

int prepare(PrepareFlags& f) {
  const std::atomic<bool>& stop = install_stop_flag();
  f.options.pairs = f.format == "pairs", f.options.dynamic = f.masking == "dynamic";
  const ModelSource source(f.tokenizer);
  const text::Tokenizer tokenizer = text::Tokenizer::load(source.folder());
  EngineFlags engine;
  engine.threads = f.threads;
  ThreadPool threads(engine.thread_count());
  const auto documents =
      data::read_documents(f.inputs, f.documents == "file" ? data::DocumentBorder::file : data::DocumentBorder::blank_line,
                           f.sentences == "lines" ? data::SentenceBorder::lines : data::SentenceBorder::split, f.text_column);
  log_info("{} documents", documents.size());
  const data::PrepareResult r = data::prepare(documents, tokenizer, f.options, threads, &stop,
                                              [](int64_t done, int64_t all) { log_info("shard {} of {} is written", done, all); });
  if (f.json)
    std::cout << fmt::format(
        "{{\"output\":{},\"documents\":{},\"sentences\":{},\"tokens\":{},\"sequences\":{},\"shards\":{},\"reused\":{}}}\n",
        json_string(f.options.output), r.documents, r.sentences, r.tokens, r.sequences, r.shards, r.reused);
  else
    std::cout << fmt::format("{}: {} sequences in {} shards{}, from {} documents, {} sentences, {} tokens\n", f.options.output, r.sequences,
                             r.shards, r.reused > 0 ? fmt::format(" ({} were there)", r.reused) : "", r.documents, r.sentences, r.tokens);
  return 0;
}

struct InspectFlags {
  std::vector<std::string> paths;
  std::string tokenizer;
  bool json = false;
};

/// Counts over shards.
struct Totals {
  int64_t shards = 0, sequences = 0, tokens = 0, masked = 0, labelled = 0, random_next = 0, longest = 0, max_tokens = 0, max_masks = 0;
  std::vector<int64_t> lengths;  // by length / kBin
  std::vector<std::string> bad;
};
constexpr int64_t kBin = 32;

void count(Totals& t, const data::Shard& shard) {
  ++t.shards;
  t.sequences += shard.rows(), t.tokens += static_cast<int64_t>(shard.ids.size()),
      t.masked += static_cast<int64_t>(shard.mask_positions.size());
  t.labelled += static_cast<int64_t>(shard.next_labels.size());
  t.random_next += std::count(shard.next_labels.begin(), shard.next_labels.end(), 1);
  t.max_tokens = std::max(t.max_tokens, shard.max_tokens), t.max_masks = std::max(t.max_masks, shard.max_masks);
  for (int64_t r = 0; r < shard.rows(); ++r) {
    const int64_t n = shard.length(r);
    t.longest = std::max(t.longest, n);
    const auto bin = static_cast<size_t>((n - 1) / kBin);
    if (t.lengths.size() <= bin) t.lengths.resize(bin + 1);
    ++t.lengths[bin];
  }
}

std::string example(const data::Shard& shard, const text::Tokenizer& tokenizer) {
  std::string text = "example (row 0): " + tokenizer.decode(shard.ids_of(0), false) + "\n";
  std::string words;
  for (const int32_t id : shard.labels_of(0)) words += " " + std::string(tokenizer.id_to_token(id));
  text += "masked words:" + (words.empty() ? " none in the file, they are drawn on reading" : words) + "\n";
  if (!shard.next_labels.empty()) text += fmt::format("second segment: {}\n", shard.next_labels[0] ? "random" : "the next");
  return text;
}

void print(const Totals& t, const std::string& example) {
  const auto part = [](int64_t n, int64_t of) { return of > 0 ? 100.0 * static_cast<double>(n) / static_cast<double>(of) : 0.0; };
  std::cout << fmt::format("{} shards, {} sequences of up to {} tokens (longest {}), {} tokens\n", t.shards, t.sequences, t.max_tokens,
                           t.longest, t.tokens);
  std::cout << fmt::format("masked: {} ({:.1f} % of the tokens, up to {} a sequence)\n", t.masked, part(t.masked, t.tokens), t.max_masks);
  if (t.labelled > 0) std::cout << fmt::format("next-sentence labels: {}, {:.1f} % random\n", t.labelled, part(t.random_next, t.labelled));
  for (size_t b = 0; b < t.lengths.size(); ++b)
    std::cout << fmt::format("{:6}..{:<6} {:8} {}\n", static_cast<int64_t>(b) * kBin + 1, (static_cast<int64_t>(b) + 1) * kBin,
                             t.lengths[b], std::string(static_cast<size_t>(part(t.lengths[b], t.sequences) / 2), '#'));
  std::cout << example;
  for (const std::string& bad : t.bad) std::cout << "bad: " << bad << "\n";
}

int inspect(const InspectFlags& f) {
  install_stop_flag();
  std::optional<ModelSource> source;
  std::optional<text::Tokenizer> tokenizer;
  if (!f.tokenizer.empty()) {
    source.emplace(f.tokenizer);
    tokenizer = text::Tokenizer::load(source->folder());
  }
  std::vector<std::string> files;
  for (const std::string& path : f.paths)
    for (const char* split : {"train", "test"}) {
      try {
        const auto found = data::list_shards(path, split);
        files.insert(files.end(), found.begin(), found.end());
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::not_found || std::string_view(split) == "train") continue;
        if (files.empty()) throw;
      }
    }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  Totals totals;
  std::string shown;
  for (const std::string& file : files) {
    throw_if_stopped();
    try {
      const data::Shard shard = data::read_shard(file, tokenizer ? tokenizer->vocab_size() : 0);
      count(totals, shard);
      if (shown.empty() && tokenizer && shard.rows() > 0) shown = example(shard, *tokenizer);
    } catch (const Error& e) {
      totals.bad.emplace_back(e.what());
    }
  }
  if (f.json) {
    std::string lengths, bad;
    for (const int64_t n : totals.lengths) lengths += (lengths.empty() ? "" : ",") + std::to_string(n);
    for (const std::string& b : totals.bad) bad += (bad.empty() ? "" : ",") + json_string(b);
    std::cout << fmt::format(
        "{{\"shards\":{},\"sequences\":{},\"tokens\":{},\"masked\":{},\"next_sentence_labels\":{},\"random_next\":{},\"longest\":{},"
        "\"length_bin\":{},"
        "\"lengths\":[{}],\"bad\":[{}]}}\n",
        totals.shards, totals.sequences, totals.tokens, totals.masked, totals.labelled, totals.random_next, totals.longest, kBin, lengths,
        bad);
  } else {
    print(totals, shown);
  }
  return totals.bad.empty() ? 0 : 1;
}

}  // namespace

std::function<int()> declare_data_prepare(CLI::App& app) {
  auto p = std::make_shared<PrepareFlags>();
  app.add_option("--input", p->inputs, "files and folders: text, or .csv, .tsv and .jsonl with a document a row")->required();
  app.add_option("--tokenizer,--model", p->tokenizer, "folder of the tokenizer")->required();
  app.add_option("--output", p->options.output, "folder of the shards; a run that was stopped goes on")->required();
  app.add_option("--prefix", p->options.prefix, "shards are PREFIX_training_I.hdf5 and PREFIX_test_0.hdf5")->capture_default_str();
  app.add_option("--format", p->format, "pairs: two segments with a next-sentence label (BERT); blocks: full sentences (RoBERTa)")
      ->check(CLI::IsMember({"pairs", "blocks"}))
      ->capture_default_str();
  app.add_option("--masking", p->masking, "static: in the files, dupe_factor times; dynamic: anew in each epoch, on reading")
      ->check(CLI::IsMember({"static", "dynamic"}))
      ->capture_default_str();
  app.add_option("--documents", p->documents, "where a document of a text file ends: at a blank_line, or with the file")
      ->check(CLI::IsMember({"blank_line", "file"}))
      ->capture_default_str();
  app.add_option("--sentences", p->sentences, "split: found in the text; lines: one a line")
      ->check(CLI::IsMember({"split", "lines"}))
      ->capture_default_str();
  app.add_option("--text_column", p->text_column, "column or key of the text")->capture_default_str();
  app.add_option("--max_seq_length", p->options.max_seq_length, "tokens of a sequence, special ones included")->capture_default_str();
  app.add_option("--max_predictions_per_seq", p->options.max_predictions, "masked words of a sequence, at most")->capture_default_str();
  app.add_option("--masked_lm_prob", p->options.masked_lm_prob, "share of the words that are masked")->capture_default_str();
  app.add_flag("--whole_word_mask", p->options.whole_words, "mask all pieces of a word together");
  app.add_option("--dupe_factor", p->options.dupe_factor, "static masking: passes over the text, each with other masks")
      ->capture_default_str();
  app.add_option("--short_seq_prob", p->options.short_seq_prob, "pairs: share of sequences that aim at a shorter length")
      ->capture_default_str();
  app.add_option("--num_shards", p->options.shards, "training files")->capture_default_str();
  app.add_option("--test_fraction", p->options.test_fraction, "share of the documents that are held out in a test file")
      ->capture_default_str();
  app.add_option("--seed", p->options.seed, "of the order of documents, pairs and masks")->capture_default_str();
  app.add_option("--threads", p->threads, "threads; 0: every core. The shards do not depend on it")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_flag("--json", p->json, "print the result as one JSON object");
  return [p] { return prepare(*p); };
}

std::function<int()> declare_data_inspect(CLI::App& app) {
  auto i = std::make_shared<InspectFlags>();
  app.add_option("paths", i->paths, "shards, or folders of shards")->required();
  app.add_option("--tokenizer,--model", i->tokenizer, "folder of the tokenizer: ids are checked, an example is decoded");
  app.add_flag("--json", i->json, "print the counts as one JSON object");
  return [i] { return inspect(*i); };
}

}  // namespace muster::cli
