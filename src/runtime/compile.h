// From a graph to something that runs: the whole pipeline in one readable list, the choice of backend, and Session, which keeps an
// executable together with the tensors of its parameters.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "core/cpu.h"
#include "core/threads.h"
#include "graph/graph.h"

namespace muster::runtime {

/// bf16: matmul operands and token activations are bf16, sums and masters f32. automatic: bf16 where the machine has AMX, else f32.
enum class Precision { automatic, f32, bf16 };

struct Options {
  std::string backend = "cpu";  // cpu, ref
  Precision precision = Precision::automatic;
  std::optional<Isa> isa;          // default: resolve_isa(detect_cpu())
  std::set<std::string> disabled;  // passes by name
  std::string dump_dir;            // the graph after each pass as text, when given
};

/// What automatic resolves to on this machine, and why ("bf16: AMX tiles multiply it 15x as fast as f32").
struct PrecisionChoice {
  Precision precision = Precision::f32;
  std::string reason;
};
PrecisionChoice resolve_precision(Precision wanted, Isa isa);

/// Passes, then the backend. `threads` outlives the result.
std::unique_ptr<backend::Executable> compile(graph::Graph graph, const Options& options, ThreadPool& threads);

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

  /// Call after the parameters' values changed.
  void parameters_changed() { ++version_; }
  [[nodiscard]] const backend::Signature& signature() const { return executable_->signature(); }

 private:
  std::unique_ptr<backend::Executable> executable_;
  std::vector<TensorView> parameters_;
  TensorMap keep_, outputs_;  // keep_: the parameters' memory
  uint64_t version_ = 1;
};

}  // namespace muster::runtime
