// The oracle: every op computed naively in f64, written for reading. Other backends are compared with it; nothing here is ever optimised.
// Floats are held as double between ops, so an f32 graph is computed without a rounding; only a result whose declared type is bf16 or
// f16 is rounded to it, as are the operands of a product marked `bf16`.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace muster::ref {

std::unique_ptr<backend::Backend> make_backend();

/// Tensors by the name of their leaf or output, elements in row-major order; integers and booleans as whole numbers.
using Values = std::map<std::string, std::vector<double>, std::less<>>;

/// Runs `graph` on values in full f64, whatever float type the leaves declare: what finite differences need. Output: one entry per output
/// of the graph. `symbols` gives T, B, P; `seed` is the dropouts'.
/// Throws Error(invalid_argument) when a leaf is missing or has another number of elements than its type.
Values evaluate(const graph::Graph& graph, const Values& leaves, const graph::SymbolValues& symbols, uint64_t seed = 0);

}  // namespace muster::ref
