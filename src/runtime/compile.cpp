#include "runtime/compile.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "backend/cpu/schedule.h"
#include "core/log.h"
#include "graph/serialize.h"
#include "passes/passes.h"
#include "runtime/backends.h"
#include "runtime/codegen.h"
#include "runtime/compile_cache.h"
#include "runtime/machine_tuning.h"
#include "storage/file.h"
#include "storage/sha256.h"

namespace muster::runtime {

using graph::Graph;

namespace {

/// Everything that a compiled program depends on, as one hash.
std::string key_of(const Graph& graph, const Options& options, Isa isa, Precision precision) {
  std::string text = fmt::format("muster program 3, code {}, {}, {}, {}\n", codegen_version(), options.backend, name_of(isa),
                                 precision == Precision::bf16 ? "bf16" : "f32");
  for (const std::string& pass : options.disabled) text += "without " + pass + "\n";
  return storage::sha256_hex(text + serialize(graph));
}

/// Times what happens to one program.
class Stopwatch {
 public:
  explicit Stopwatch(CompileReport& report) : report_(report) {}
  template <typename F>
  auto time(std::string stage, const F& body) {
    struct Note {
      CompileReport& report;
      std::string stage;
      std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
      ~Note() {
        report.stages.emplace_back(std::move(stage),
                                   std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
      }
    } const note{report_, std::move(stage)};
    return body();
  }

 private:
  CompileReport& report_;
};

size_t count_regions(const Graph& graph) {
  return static_cast<size_t>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const graph::Node& n) { return n.op == graph::Op::region; }));
}

/// The whole pipeline up to the backend, in order.
std::vector<std::byte> run_passes(Graph& graph, const Options& options, Isa isa, Precision precision, CompileReport& report) {
  Stopwatch watch(report);
  int number = 0;
  const auto dump = [&](std::string_view pass) {
    if (!options.dump_dir.empty())
      storage::write_file_atomic(fmt::format("{}/{}-{:02}-{}.txt", options.dump_dir, options.program, number++, pass), to_string(graph));
  };
  const auto run = [&](const char* pass, const std::function<Graph(const Graph&)>& body) {
    if (options.disabled.contains(pass)) return;
    watch.time(pass, [&] {
      graph = body(graph);
      verify(graph);
    });
    dump(pass);
  };

  verify(graph);
  dump("built");
  run("simplify", passes::simplify);
  if (!options.disabled.contains("fuse")) run("rematerialize", passes::rematerialize);  // pays only as prologues
  run("fuse", passes::fuse);
  if (precision == Precision::bf16) run("precision", passes::to_bf16);

  report.regions = count_regions(graph);
  if (options.backend != "cpu" || report.regions == 0) return {};
  const std::vector<cpu::LoopNest> nests = watch.time("schedule", [&] { return cpu::loop_nests(graph); });
  report.functions = nests.size();
  std::vector<std::byte> object = watch.time("codegen", [&] { return generate(nests, isa); });
  report.object_bytes = object.size();
  return object;
}

/// Whether the object of a cached program has the functions that this muster looks for. Another version may schedule regions otherwise.
bool has_functions(const CachedProgram& program) {
  try {
    for (const cpu::LoopNest& nest : cpu::loop_nests(program.graph)) {
      if (program.code == nullptr) return false;
      (void)program.code->find(nest.name);
    }
    return true;
  } catch (const Error& e) {
    log_warning("the program in the compile cache is not of this version and made anew: {}", e.what());
    return false;
  }
}

/// Fusion needs code; without its generator the program runs one operation at a time.
Options without_fusion_if_needed(const Options& options) {
  Options now = options;
  std::string why;
  if (options.backend != "cpu" || options.disabled.contains("fuse") || codegen_available(&why)) return now;
  static std::atomic<bool> warned = false;
  if (!warned.exchange(true)) log_warning("no fusion, so programs run slower: {}", why);
  now.disabled.insert("fuse");
  return now;
}

}  // namespace

double CompileReport::milliseconds() const {
  double total = 0;
  for (const auto& [stage, ms] : stages) total += ms;
  return total;
}

void check_pass_names(const std::set<std::string>& disabled) {
  std::string known;
  for (const std::string_view pass : kPasses) known += (known.empty() ? "" : ", ") + std::string(pass);
  for (const std::string& name : disabled)
    if (std::find(kPasses.begin(), kPasses.end(), name) == kPasses.end())
      throw Error(ErrorKind::usage, "no pass is called '{}'; the passes are {}", name, known);
}

std::unique_ptr<backend::Executable> compile(Graph graph, const Options& options, ThreadPool& threads) {
  const Isa isa = options.isa ? *options.isa : machine_isa();
  const cpu::Tuning tuning = options.backend == "cpu" ? machine_tuning(isa, options.cache_folder).tuning : cpu::Tuning();
  const Precision precision = resolve_precision(options.precision, isa, tuning).precision;
  CompileReport report;
  report.program = options.program;
  Stopwatch watch(report);
  std::shared_ptr<const cpu::Code> code;

  const bool cached = !options.cache_folder.empty() && options.dump_dir.empty() && options.backend == "cpu";
  std::optional<CompileCache> cache;
  std::string key;
  std::optional<CachedProgram> found;
  if (cached) {
    cache.emplace(options.cache_folder, options.cache_limit);
    key = watch.time("key", [&] { return key_of(graph, options, isa, precision); });
    found = watch.time("load", [&] { return cache->find(key); });
    if (found && !has_functions(*found)) found.reset();
  }
  if (found) {
    report.from_cache = true;
    graph = std::move(found->graph), code = std::move(found->code);
    report.regions = count_regions(graph), report.object_bytes = found->object_bytes;
  } else {
    const Options now = without_fusion_if_needed(options);
    const std::vector<std::byte> object = run_passes(graph, now, isa, precision, report);
    const bool whole = now.disabled == options.disabled;  // what lacks fusion only here is not for later
    watch.time("store and load", [&] {
      if (cache && whole && cache->store(key, graph, object, report.not_stored))
        if (std::optional<CachedProgram> stored = cache->find(key)) code = std::move(stored->code);
      if (code == nullptr && !object.empty()) code = cpu::Code::load(object);
    });
  }
  auto executable =
      watch.time("plan", [&] { return make_backend(options.backend, isa, tuning, std::move(code))->compile(graph, {&threads}); });
  if (options.on_compiled) options.on_compiled(report);
  return executable;
}

CompileReport compile_ahead(Graph graph, const Options& options) {
  const Isa isa = options.isa ? *options.isa : machine_isa();
  const Precision precision = resolve_precision(options.precision, isa).precision;
  CompileReport report;
  report.program = options.program;
  const CompileCache cache(options.cache_folder, options.cache_limit);
  const std::string key = key_of(graph, options, isa, precision);
  if (cache.contains(key)) {
    report.from_cache = true;
    return report;
  }
  const std::vector<std::byte> object = run_passes(graph, options, isa, precision, report);
  if (!cache.store(key, graph, object, report.not_stored)) throw Error(ErrorKind::io, "{}", report.not_stored);
  return report;
}

}  // namespace muster::runtime
