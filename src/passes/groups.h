// Which nodes the fuse pass puts into one region: groups of element-wise operations, row reductions and column sums over one
// [rows, width], each of which one loop nest computes. No rewriting here (fuse.cpp).
#pragma once
#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace muster::passes {

struct Group {
  std::vector<int32_t> nodes;  // rising
  int32_t product = -1;        // the dot whose epilogue or prologue the group is, if any
};

/// Constants, and broadcasts of a row, a column or one value: they cost nothing inside a nest and are repeated in each region that reads
/// them.
bool is_free(const graph::Graph& graph, const graph::Node& node);

/// The node that really makes `v`: looks through free broadcasts. -1 for a constant.
int32_t source_of(const graph::Graph& graph, graph::Value v);

/// Disjoint groups that can each be one node: no path leaves a group and comes back into it, also not through other groups.
/// First what makes an operand of a weight's gradient and nothing else becomes that product's prologue; then the epilogues of products over
/// symbolic rows grow, and prologues of those without one; then everything else joins its producers.
std::vector<Group> find_groups(const graph::Graph& graph);

}  // namespace muster::passes
