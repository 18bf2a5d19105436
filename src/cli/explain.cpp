// muster explain: a model's program as a table of steps: what each costs on paper, what it takes, and how near that is to the machine's
// limit. Inputs are random tokens; the shapes, not the texts, decide the times.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/program_of.h"
#include "cli/support.h"
#include "cli/verbs.h"
#include "core/philox.h"
#include "models/inputs.h"
#include "models/pretrainer.h"
#include "models/weights.h"
#include "runtime/backends.h"
#include "runtime/profile.h"

namespace muster::cli {
namespace {

struct Flags {
  EngineFlags engine;
  std::string model, config_name, task = "auto", next_sentence = "auto", trace;
  int64_t tokens = 832, sequences = 32, predictions = 0, runs = 5, rows = 0;
  bool train = false, json = false;
};

models::Inputs random_batch(const models::ModelConfig& config, int64_t tokens, int64_t sequences, int64_t predictions) {
  Philox random(1);
  std::vector<int32_t> ids, cu_seqlens{0};
  const auto draw = [&](int64_t n, size_t below) {
    std::vector<int32_t> values;
    for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<int32_t>(random.below(std::max<uint64_t>(1, below))));
    return values;
  };
  const auto weights = [](int64_t n) {
    return std::vector<float>(static_cast<size_t>(n), 1.0f / static_cast<float>(std::max<int64_t>(1, n)));
  };
  const auto vocabulary = static_cast<size_t>(config.vocab_size);
  for (int64_t s = 0; s < sequences; ++s)
    cu_seqlens.push_back(cu_seqlens.back() + static_cast<int32_t>(tokens / sequences + (s < tokens % sequences ? 1 : 0)));
  models::Inputs inputs = models::make_inputs(config, draw(tokens, vocabulary), {}, cu_seqlens);
  if (config.head == models::Head::classification) {
    models::add_labels(inputs, config, draw(sequences, config.labels.size()), weights(sequences));
    return inputs;
  }
  std::vector<int32_t> rows;
  for (int64_t i = 0; i < predictions; ++i) rows.push_back(static_cast<int32_t>(i * tokens / predictions));
  models::add_masks(inputs, config, rows, draw(predictions, vocabulary), weights(predictions));
  if (config.head == models::Head::pretraining) models::add_next(inputs, draw(sequences, 2), weights(sequences));
  return inputs;
}

std::string cut(const std::string& text, size_t width) { return text.size() <= width ? text : text.substr(0, width - 3) + "..."; }

void print_table(const std::vector<runtime::ProfileRow>& rows, const runtime::Peaks& peaks, double whole_ms, size_t most) {
  std::cout << fmt::format("{:>8} {:>6} {:>5} {:>9} {:>9} {:>8} {:>8} {:>7}  {}\n", "ms", "share", "times", "GFLOP", "MB", "GFLOP/s",
                           "GB/s", "limit", "step");
  runtime::ProfileRow all, rest;
  const auto line = [&](const runtime::ProfileRow& r, const std::string& step) {
    std::cout << fmt::format("{:8.3f} {:5.1f}% {:5} {:9.3f} {:9.2f} {:8.1f} {:8.1f} {:6.0f}%  {}\n", r.milliseconds,
                             100 * r.milliseconds / whole_ms, r.count, r.cost.flops / 1e9, r.cost.bytes / 1e6,
                             r.cost.flops / (r.milliseconds * 1e6), r.cost.bytes / (r.milliseconds * 1e6), 100 * r.of_limit(peaks), step);
  };
  const auto add = [](runtime::ProfileRow& to, const runtime::ProfileRow& r) {
    to.count += r.count, to.cost.flops += r.cost.flops, to.cost.bytes += r.cost.bytes, to.milliseconds += r.milliseconds;
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    add(all, rows[i]);
    if (i < most)
      line(rows[i], cut(rows[i].step, 60) + " -> " + rows[i].types);
    else
      add(rest, rows[i]);
  }
  if (rest.count > 0) line(rest, fmt::format("({} more kinds of steps; --rows 0 shows all)", rows.size() - most));
  line(all, "all steps");
}

int run(Flags& flags) {
  if (flags.tokens < flags.sequences)
    throw Error(ErrorKind::usage, "--tokens {}: fewer than --sequences {}", flags.tokens, flags.sequences);
  const models::ModelConfig config = with_head(config_of(flags.model, flags.config_name), flags.task, flags.next_sentence);
  const bool words = config.head != models::Head::classification;
  if (!words && flags.predictions > 0) throw Error(ErrorKind::usage, "--predictions is of --task masked_lm");
  const int64_t predictions = !words ? 0 : flags.predictions > 0 ? flags.predictions : std::max<int64_t>(1, flags.tokens * 15 / 100);
  if (predictions > flags.tokens) throw Error(ErrorKind::usage, "--predictions {}: more than --tokens {}", predictions, flags.tokens);
  const models::Parameters parameters = models::init_parameters(config, 1);  // their values do not matter for times
  ThreadPool threads(flags.engine.thread_count());
  std::vector<NamedProgram> programs = programs_of(config, flags.train, 0);
  NamedProgram& program = programs.back();
  const runtime::Options options = named(flags.engine.runtime(), program.name);
  runtime::Session session(runtime::compile(std::move(program.graph), options, threads), parameters);
  const models::Inputs inputs = random_batch(config, flags.tokens, flags.sequences, predictions);
  session.keep_packed(!flags.train);  // as in training, where weights change at every step

  (void)session.run(inputs, 1);  // packs weights, grows buffers
  std::vector<std::vector<backend::StepTime>> runs;
  std::vector<double> whole;
  runtime::Trace trace;
  for (int64_t i = 0; i < flags.runs; ++i) {
    throw_if_stopped();
    runs.emplace_back();
    session.record(&runs.back());
    const auto begin = runtime::Trace::Clock::now();
    (void)session.run(inputs, static_cast<uint64_t>(i));
    const auto end = runtime::Trace::Clock::now();
    whole.push_back(std::chrono::duration<double, std::milli>(end - begin).count());
    trace.span(fmt::format("run {}", i + 1), "runs", begin, end);
    trace.steps(session.graph(), runs.back(), "steps");
  }
  if (runs.front().empty()) throw Error(ErrorKind::usage, "--backend ref has no steps to explain: it computes for comparison only");
  session.record(nullptr);
  std::sort(whole.begin(), whole.end());
  const double whole_ms = whole[whole.size() / 2];
  const Isa isa = runtime::machine_isa();
  const runtime::Peaks peaks = runtime::measure_peaks(isa, threads);
  const graph::SymbolValues symbols{1, flags.tokens, flags.sequences, predictions};
  const std::vector<runtime::ProfileRow> rows = runtime::profile(session.graph(), symbols, runs);
  if (!flags.trace.empty()) trace.write(flags.trace);

  if (flags.json) {
    std::string list;
    for (const runtime::ProfileRow& r : rows)
      list += fmt::format("{}{{\"step\":{},\"type\":{},\"count\":{},\"flops\":{:.0f},\"bytes\":{:.0f},\"ms\":{:.4f},\"of_limit\":{:.4f}}}",
                          list.empty() ? "" : ",", json_string(r.step), json_string(r.types), r.count, r.cost.flops, r.cost.bytes,
                          r.milliseconds, r.of_limit(peaks));
    std::cout << fmt::format(
        "{{\"program\":\"{}\",\"tokens\":{},\"sequences\":{},\"threads\":{},\"isa\":\"{}\",\"ms\":{:.4f},\"peak_gflops\":{:.1f},\"peak_gb_"
        "per_s\":{:.1f},"
        "\"steps\":[{}]}}\n",
        program.name, flags.tokens, flags.sequences, threads.threads(), name_of(isa), whole_ms, peaks.gflops, peaks.gigabytes_per_second,
        list);
    return 0;
  }
  std::cout << fmt::format("program {}: {} tokens in {} sequences, {} threads, {}: {:.2f} ms a run (median of {})\n", program.name,
                           flags.tokens, flags.sequences, threads.threads(), name_of(isa), whole_ms, flags.runs);
  std::cout << fmt::format(
      "measured limits: {:.0f} GFLOP/s of f32 multiply-adds in registers, {:.1f} GB/s of memory read and written in place\n", peaks.gflops,
      peaks.gigabytes_per_second);
  std::cout << "limit: the least time that these allow, over the time taken (above 100 %: what is counted as memory came from a cache)\n\n";
  print_table(rows, peaks, whole_ms, flags.rows == 0 ? rows.size() : static_cast<size_t>(flags.rows));
  return 0;
}

}  // namespace

std::function<int()> declare_explain(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--model", flags->model, "model folder or model.tar.gz (its shapes; weights are random)");
  app.add_option("--config_name", flags->config_name, "instead of --model: tiny, minilm, bert-base, roberta-base or distilbert-base");
  declare_task_flags(app, flags->task, flags->next_sentence);
  app.add_flag("--train", flags->train, "the training program instead of inference");
  app.add_option("--tokens", flags->tokens, "tokens of the batch")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_option("--sequences", flags->sequences, "sequences they are in")->check(CLI::Range(1, 1 << 16))->capture_default_str();
  app.add_option("--predictions", flags->predictions, "masked_lm: masked positions among them; 0: 15 of 100")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--runs", flags->runs, "measured runs, after one that is not")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--rows", flags->rows, "show so many kinds of steps; 0: all")->check(CLI::Range(0, 100000))->capture_default_str();
  app.add_option("--trace", flags->trace, "also write the runs as a trace for ui.perfetto.dev or chrome://tracing")->type_name("FILE");
  app.add_flag("--json", flags->json, "print the table as one JSON object");
  declare_engine_flags(app, flags->engine);
  return [flags] {
    install_stop_flag();
    return run(*flags);
  };
}

}  // namespace muster::cli
