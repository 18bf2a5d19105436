// A pass reads one graph and writes another, node by node. Rewriter keeps what an old value became.
#pragma once
#include <vector>

#include "graph/builder.h"

namespace muster::passes {

class Rewriter {
 public:
  explicit Rewriter(const graph::Graph& from) : from_(from), builder_(to_), became_(from.nodes.size()) {}

  [[nodiscard]] const graph::Graph& from() const { return from_; }
  graph::Builder& builder() { return builder_; }

  /// What `old` became. It must have been written.
  [[nodiscard]] graph::Value at(graph::Value old) const;
  [[nodiscard]] bool written(graph::Value old) const;
  void set(graph::Value old, graph::Value now);
  /// Writes node `n` again, on what its inputs became.
  void copy(int32_t n);
  /// Same, on other inputs.
  graph::Value emit_like(int32_t n, std::vector<graph::Value> inputs);
  /// The new graph with the old outputs.
  graph::Graph finish();

 private:
  const graph::Graph& from_;
  graph::Graph to_;
  graph::Builder builder_;
  std::vector<std::vector<graph::Value>> became_;
};

/// For each value of the graph, the nodes that use it (an output of the graph counts as node -1).
class Uses {
 public:
  explicit Uses(const graph::Graph& graph);
  [[nodiscard]] const std::vector<int32_t>& of(graph::Value v) const;

 private:
  std::vector<std::vector<std::vector<int32_t>>> uses_;
};

/// Nodes that an output needs. Leaves always stay: they are the program's signature.
std::vector<bool> live_nodes(const graph::Graph& graph);

}  // namespace muster::passes
