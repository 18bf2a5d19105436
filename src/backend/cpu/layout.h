// Where each value of a program lives: bound tensors, the arena, or nowhere. Decided once per program, from the graph alone.
#pragma once
#include <cstdint>
#include <vector>

#include "backend/cpu/kernels.h"
#include "graph/graph.h"

namespace muster::cpu {

enum class Home : uint8_t { none, parameter, input, output, arena };

struct Place {
  Home home = Home::none;
  int32_t index = 0;  // of the parameter, input, output, or lifetime
};

/// How a binary operation reads a right operand that is a broadcast: the small source itself, never a copy of it.
struct RightOperand {
  graph::Value source;
  Right shape = Right::same;
  bool swapped = false;  // the broadcast stood on the left
};

struct Layout {
  std::vector<std::vector<Place>> places;  // [node][output]; aliases (reshape) have their source's place
  std::vector<bool> skip;                  // nodes without a step: leaves, aliases, broadcasts that readers see through
  std::vector<RightOperand> right;         // [node] of binary operations
  struct Temporary {
    graph::Value value;
    int32_t first = 0, last = 0;  // node numbers
  };
  std::vector<Temporary> temporaries;  // arena values
  struct Copy {
    graph::Value from;
    int32_t output = 0, after = 0;  // done after node `after`
  };
  std::vector<Copy> copies;                    // outputs that no step writes in place
  std::vector<std::vector<int32_t>> finished;  // [node]: outputs that are final after it
};

Layout lay_out(const graph::Graph& graph);

/// Parameter-shaped outputs are the ones that Bindings.accumulate adds to.
bool accumulates(const graph::Type& type);

}  // namespace muster::cpu
