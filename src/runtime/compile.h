// From a graph to something that runs: the whole pipeline in one readable list, the choice of backend, and Session, which keeps an
// executable together with the tensors of its parameters.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/tuning.h"
#include "core/cpu.h"
#include "core/threads.h"
#include "graph/graph.h"

namespace muster::runtime {

/// bf16: matmul operands and token activations are bf16, sums and masters f32. automatic: whichever multiplies faster here.
enum class Precision { automatic, f32, bf16 };

/// How one program came to be.
struct CompileReport {
  std::string program;                                 // Options::program
  bool from_cache = false;                             // else compiled
  std::vector<std::pair<std::string, double>> stages;  // milliseconds of each pass, of codegen, of loading, in order
  size_t regions = 0, functions = 0;                   // fused regions; different ones among them
  size_t object_bytes = 0;                             // of their machine code
  std::string not_stored;                              // why the cache does not hold it now; empty: it does, or there is no cache

  [[nodiscard]] double milliseconds() const;
};

struct Options {
  std::string backend = "cpu";  // cpu, ref
  Precision precision = Precision::automatic;
  std::optional<Isa> isa;           // default: resolve_isa(detect_cpu())
  std::set<std::string> disabled;   // passes by name (kPasses)
  std::string dump_dir;             // the graph after each pass as text, when given; the cache is then not asked
  std::string program = "program";  // its name in reports and dumps
  std::string cache_folder;         // of the compile cache (compile_cache.h); empty: none
  uint64_t cache_limit = uint64_t{1} << 30;
  std::function<void(const CompileReport&)> on_compiled;  // called by compile() once for each program
};

/// The same options for a program of that name.
inline Options named(Options options, std::string program) {
  options.program = std::move(program);
  return options;
}

/// Names of the passes, in the order in which they run.
inline constexpr std::array<std::string_view, 4> kPasses{"simplify", "rematerialize", "fuse", "precision"};

/// Throws Error(usage) naming the passes when one of `disabled` is none of them.
void check_pass_names(const std::set<std::string>& disabled);

/// What automatic resolves to, and why ("bf16: products run 15x as fast as in f32 here ...").
struct PrecisionChoice {
  Precision precision = Precision::f32;
  std::string reason;
};
/// By what `tuning` measured; when it measured nothing, by the instruction set.
PrecisionChoice resolve_precision(Precision wanted, Isa isa, const cpu::Tuning& tuning = {});
/// Of this machine, with the tuning that options.cache_folder keeps (machine_tuning.h): what compile() takes.
PrecisionChoice resolve_precision(const Options& options);

/// Passes, code, then the backend; or all but the backend from the compile cache. `threads` outlives the result.
/// Without the code generator (and without a cache entry) fusion is left out, with one warning.
std::unique_ptr<backend::Executable> compile(graph::Graph graph, const Options& options, ThreadPool& threads);

/// Compiles for options.isa, which this machine need not have, and stores the program in options.cache_folder. Runs nothing.
/// Throws Error(unsupported) without the code generator, Error(io) when the entry cannot be written.
CompileReport compile_ahead(graph::Graph graph, const Options& options);

/// Names to tensors: parameters of a model, inputs of a batch, outputs of a run.
using TensorMap = std::map<std::string, Tensor, std::less<>>;

/// An executable with its parameters bound by name. Owns nothing of the parameters' memory but shares it.
class Session {
 public:
  Session(std::unique_ptr<backend::Executable> executable, const TensorMap& parameters);

  /// Runs with inputs by name; gives the outputs by name, in tensors that are reused by the next run of the same shape.
  /// Throws Error(invalid_argument) that names a missing input.
  const TensorMap& run(const TensorMap& inputs, uint64_t seed = 0);

  /// As run, but writes into the given tensors where `outputs` has them (gradient buffers), adding when `accumulate`.
  const TensorMap& run_into(const TensorMap& inputs, const TensorMap& outputs, uint64_t seed, bool accumulate);

  /// Whether packed copies of the parameters are kept from run to run (they are at first). Not worth their memory, up to twice that of the
  /// weights, when the parameters change after every run. The results are the same.
  void keep_packed(bool keep) { keep_packed_ = keep; }

  /// Call after the parameters' values changed.
  void parameters_changed() { ++version_; }
  [[nodiscard]] const backend::Signature& signature() const { return executable_->signature(); }
  /// As Executable's.
  [[nodiscard]] const graph::Graph& graph() const { return executable_->graph(); }
  void record(std::vector<backend::StepTime>* steps) { executable_->record(steps); }

 private:
  std::unique_ptr<backend::Executable> executable_;
  std::vector<TensorView> parameters_;
  TensorMap keep_, outputs_;  // keep_: the parameters' memory
  uint64_t version_ = 1;
  bool keep_packed_ = true;
};

}  // namespace muster::runtime
