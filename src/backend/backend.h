// What every backend offers: a graph in, an executable out. The implementations are in backend/ref (the oracle) and backend/cpu.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "core/threads.h"
#include "graph/graph.h"

namespace muster::backend {

/// The tensors of one run, each list in the order of Signature. Shapes are concrete; the symbols' values follow from the inputs.
/// Parameters are f32 masters and are only read, but by the optimizer's update, which writes them in place.
struct Bindings {
  std::vector<TensorView> parameters, inputs, outputs;
  uint64_t seed = 0;                // of dropout: differs from step to step
  uint64_t parameters_version = 0;  // raised whenever a parameter changed: packed copies are made anew
  bool keep_packed = true;          // packed copies of parameters stay for the next run; else each is made where it is used: less memory
  bool accumulate = false;          // outputs of parameter shape are added to, not overwritten (gradient accumulation)
};

/// Leaves and outputs of a program, in the order of their nodes.
struct Signature {
  struct Slot {
    std::string name;
    graph::Type type;
  };
  std::vector<Slot> parameters, inputs, outputs;
};
Signature signature_of(const graph::Graph& graph);

/// Values of T, B, P from the concrete inputs. Throws Error(invalid_argument) that names the input when count, dtype or a size does not
/// fit.
graph::SymbolValues solve_symbols(const Signature& signature, const Bindings& io);

/// Called with the index of an output as soon as it is final, in the order in which outputs become so.
using OnOutput = std::function<void(size_t output)>;

/// When one step of a run began and ended.
struct StepTime {
  int32_t node = 0;
  std::chrono::steady_clock::time_point begin, end;
};

/// A compiled program. Runs from one thread at a time; any batch shape.
class Executable {
 public:
  virtual ~Executable() = default;
  [[nodiscard]] virtual const Signature& signature() const = 0;
  virtual void run(const Bindings& io, const OnOutput& on_output = {}) = 0;
  /// What it runs: the graph after the passes.
  [[nodiscard]] virtual const graph::Graph& graph() const = 0;
  /// From now on each run appends its steps to `steps`, in order (a backend may have none to tell); null: no longer.
  virtual void record(std::vector<StepTime>* steps) = 0;
};

struct CompileOptions {
  ThreadPool* threads = nullptr;  // outlives the executable
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::unique_ptr<Executable> compile(const graph::Graph& graph, const CompileOptions& options) const = 0;
};

}  // namespace muster::backend
