// muster fill-mask: the likeliest words for the masked places of texts, by a masked language model.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <numeric>

#include "cli/support.h"
#include "cli/verbs.h"
#include "models/pretrainer.h"
#include "models/weights.h"
#include "text/tokenizer.h"

namespace muster::cli {
namespace {

struct Flags {
  EngineFlags engine;
  std::string model, file;
  std::vector<std::string> texts;
  int top_k = 5;
  bool json = false;
};

struct Candidate {
  int32_t id = 0;
  double score = 0;  // softmax
};

std::vector<Candidate> best_of(std::span<const float> logits, int top_k) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto k = static_cast<std::ptrdiff_t>(std::min<size_t>(static_cast<size_t>(top_k), order.size()));
  std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  });
  const double largest = static_cast<double>(logits[static_cast<size_t>(order[0])]);
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - largest);
  std::vector<Candidate> best;
  for (auto it = order.begin(); it != order.begin() + k; ++it)
    best.push_back({*it, std::exp(static_cast<double>(logits[static_cast<size_t>(*it)]) - largest) / sum});
  return best;
}

int run(const Flags& flags) {
  install_stop_flag();
  const ModelSource source(flags.model);
  models::ModelConfig config = models::read_config(source.folder());
  if (config.head == models::Head::classification)
    throw Error(ErrorKind::invalid_argument, "{}: a {}, not a masked language model; `muster train --task masked_lm` makes one",
                flags.model, models::architecture_of(config));
  const text::Tokenizer tokenizer = text::Tokenizer::load(source.folder());
  const auto mask_id = tokenizer.mask_id();
  if (!mask_id) throw Error(ErrorKind::invalid_argument, "{}: the tokenizer has no mask token", flags.model);
  models::LoadReport report;
  const models::Parameters parameters = models::load_parameters(source.folder(), config, {}, report);
  if (!report.initialised.empty())
    throw Error(ErrorKind::invalid_argument, "{}: the weights have no {}: this is no trained language model", flags.model,
                report.initialised.front());
  ThreadPool threads(flags.engine.thread_count());
  models::PretrainerOptions bare;
  bare.loss = false;
  runtime::Session session(runtime::compile(models::build_pretrainer(config, bare), named(flags.engine.runtime(), "fill-mask"), threads),
                           parameters);

  const auto take = [&](std::string&& text) {
    throw_if_stopped();
    const text::Encoding e = tokenizer.encode(text, {true, static_cast<int>(config.max_tokens())});
    std::vector<int32_t> rows;
    for (size_t i = 0; i < e.ids.size(); ++i)
      if (e.ids[i] == *mask_id) rows.push_back(static_cast<int32_t>(i));
    if (rows.empty())
      throw Error(ErrorKind::invalid_argument, "\"{}\" has no masked place: write {} where a word is wanted", text,
                  tokenizer.id_to_token(*mask_id));
    const std::vector<int32_t> borders{0, static_cast<int32_t>(e.ids.size())}, labels(rows.size(), 0);
    models::Inputs inputs = models::make_inputs(config, e.ids, {}, borders);
    models::add_masks(inputs, config, rows, labels, std::vector<float>(rows.size(), 0.0f));
    const auto logits = session.run(inputs).at("logits").as<float>();
    const auto width = static_cast<size_t>(config.vocab_size);
    std::string json;
    for (size_t m = 0; m < rows.size(); ++m) {
      std::string places;
      if (!flags.json && rows.size() > 1) std::cout << fmt::format("mask {}\n", m + 1);
      for (const Candidate& c : best_of(logits.subspan(m * width, width), flags.top_k)) {
        const std::string token(c.id < tokenizer.vocab_size() ? tokenizer.id_to_token(c.id) : "");
        std::vector<int32_t> filled = e.ids;
        filled[static_cast<size_t>(rows[m])] = c.id;
        const std::string sequence = c.id < tokenizer.vocab_size() ? tokenizer.decode(filled, rows.size() == 1) : "";
        if (flags.json)
          places += fmt::format("{}{{\"score\":{:.6g},\"token\":{},\"token_str\":{},\"sequence\":{}}}", places.empty() ? "" : ",", c.score,
                                c.id, json_string(token), json_string(sequence));
        else
          std::cout << fmt::format("{:.4f}  {:16}  {}\n", c.score, token, sequence);
      }
      json += (json.empty() ? "" : ",") + ("[" + places + "]");
    }
    if (flags.json) std::cout << "[" << json << "]\n";
    if (!std::cout) throw Error(ErrorKind::io, "standard output: cannot write");
  };
  for_each_text(flags.texts, flags.file, take);
  return 0;
}

}  // namespace

std::function<int()> declare_fill_mask(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--model", flags->model, "folder or model.tar.gz of a masked language model")->required();
  app.add_option("texts", flags->texts, "texts with the mask token; without any: lines of standard input");
  app.add_option("--file", flags->file, "texts, one a line; - is standard input");
  app.add_option("--top_k", flags->top_k, "words to show for each place")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_flag("--json", flags->json, "a line of JSON for each text: a list of candidates for each place");
  declare_engine_flags(app, flags->engine);
  return [flags] { return run(*flags); };
}

}  // namespace muster::cli
