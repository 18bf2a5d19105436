// A compiled program of the CPU backend: the graph's nodes run in order, each by one kernel (steps.cpp).
#pragma once
#include <map>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/code.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/layout.h"
#include "backend/cpu/matmul.h"
#include "backend/cpu/memory_plan.h"
#include "backend/cpu/schedule.h"
#include "backend/cpu/tuning.h"
#include "backend/cpu/workspace.h"

namespace muster::cpu {

class Program final : public backend::Executable {
 public:
  /// `code` holds the functions of the graph's regions (schedule.h); null when it has none.
  /// Throws Error(unsupported) when a node has no kernel here.
  Program(graph::Graph graph, Isa isa, const Tuning& tuning, ThreadPool& pool, std::shared_ptr<const Code> code);

  [[nodiscard]] const backend::Signature& signature() const override { return signature_; }
  void run(const backend::Bindings& io, const backend::OnOutput& on_output) override;
  [[nodiscard]] const graph::Graph& graph() const override { return graph_; }
  void record(std::vector<backend::StepTime>* steps) override { steps_ = steps; }

 private:
  struct Run;  // one run's pointers and sizes (steps.cpp)

  void plan(const graph::SymbolValues& symbols);
  void step(Run& run, int32_t node);
  void dot(Run& run, int32_t node);
  void region(Run& run, int32_t node);
  void rows_region(Run& run, int32_t node, std::vector<void*>& arguments);
  void tile_region(Run& run, int32_t node, std::vector<void*>& arguments);
  void prologue_region(Run& run, int32_t node, std::vector<void*>& arguments);
  void add_partials(Run& run, int32_t node, int64_t parts, int64_t stride);
  /// left * right as `attrs` say, the right operand packed once when it is a parameter and packings are kept.
  void product(Run& run, graph::Value left, graph::Value right, const graph::Attrs& attrs, const Result& result, const Epilogue& epilogue);
  /// A value as an operand of a product.
  Operand operand(const Run& run, graph::Value v, bool transposed) const;
  /// Whether output 0 of a node is a gradient that is added to.
  [[nodiscard]] bool adds_onto(const Run& run, int32_t node) const;
  void reduce_sum(Run& run, int32_t node);
  void slice_or_concat(Run& run, int32_t node);
  const PackedMatrix& packed(Run& run, graph::Value weight, bool transposed, Math math);

  graph::Graph graph_;
  backend::Signature signature_;
  Isa isa_;
  Tuning tuning_;
  const Kernels& kernels_;
  ThreadPool& pool_;
  Workspace workspace_;
  Layout layout_;
  MemoryPlan plan_;
  graph::SymbolValues planned_{1, -1, -1, -1};
  Buffer arena_;
  std::vector<backend::StepTime>* steps_ = nullptr;

  /// Regions as scheduled, with their functions.
  struct Region {
    RegionPlan plan;
    void* function = nullptr;
    std::vector<size_t> sums;  // arguments that are column sums
  };
  std::map<int32_t, Region> regions_;
  std::shared_ptr<const Code> code_;
  std::vector<float> partials_;  // of column sums, one row a chunk

  /// Weights in the micro-kernels' layout, by parameter and orientation; made anew when the parameters' version moved on.
  struct Packed {
    PackedMatrix matrix;
    uint64_t version = 0;
    const void* source = nullptr;
  };
  std::map<std::pair<int32_t, bool>, Packed> packed_;
};

}  // namespace muster::cpu
