// From the body of a region to the loop nest that computes it: stages between row reductions, what is kept for a later stage and what
// is computed again. How a nest becomes machine code: codegen/. How it is run: program.cpp.
#pragma once
#include <vector>

#include "backend/cpu/loop_nest.h"
#include "graph/graph.h"

namespace muster::cpu {

/// A region as the program runs it.
struct RegionPlan {
  LoopNest nest;
  struct Bound {           // what stands behind an argument of the nest
    int32_t operand = -1;  // of the region, or
    int32_t result = -1;   // of the region; none of both: the tile
  };
  std::vector<Bound> arguments;   // in the order of nest.arguments
  std::vector<uint64_t> streams;  // of the nest's masks
  graph::Type space;              // [rows, width] that the nest loops over
  // Of a region with a product: its operands among the region's (-1: the one that the nest makes, a prologue), and its attributes. The nest
  // of a product without prologue is its epilogue.
  bool prologue = false;
  int32_t left = -1, right = -1;
  graph::Attrs product;
};

/// Throws Error(unsupported) naming the op when the body holds something that no nest computes.
RegionPlan schedule(const graph::Graph& body);

/// The nests of all regions of a graph, equal ones once, in order of name.
std::vector<LoopNest> loop_nests(const graph::Graph& graph);

}  // namespace muster::cpu
