// Graphs as bytes, for the compile cache: equal graphs give equal bytes, so they also are what its keys are made of.
// No file here (runtime/compile_cache.cpp).
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "graph/graph.h"

namespace muster::graph {

/// Little-endian: a format number, nodes, outputs; the bodies of regions nested.
std::string serialize(const Graph& graph);

/// The graph that serialize() was given. Throws Error(corrupt) on any other bytes; whether the graph makes sense is verify()'s to say.
Graph deserialize(std::string_view bytes);

}  // namespace muster::graph
