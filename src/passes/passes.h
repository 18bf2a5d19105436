// The passes, in the order in which runtime/compile.cpp runs them. Each gives an equivalent graph; the verifier runs after each.
#pragma once
#include "graph/graph.h"

namespace muster::passes {

/// Drops what no output needs, merges equal nodes, and removes operations that leave every bit as it is (x + 0 is kept: it turns -0
/// into 0). Leaves stay in their order.
graph::Graph simplify(const graph::Graph& graph);

/// Gives gradients of weights operands of their own, made again from what the backward pass keeps anyway: GELU of its operand, a layer norm
/// of its operand and statistics. The forward's copies need not be kept for them; fuse makes them while they are packed (its prologues),
/// and merges them with the forward's again where it cannot.
graph::Graph rematerialize(const graph::Graph& graph);

/// Puts what one loop nest computes into one `region` node: element-wise operations, row reductions and norms, column sums; and what
/// follows a product and fits its epilogue, or makes an operand of a product and fits its prologue, together with the product (groups.h).
graph::Graph fuse(const graph::Graph& graph);

/// Mixed precision: products over tokens take bf16 operands, and what flows between them is stored as bf16. Parameters, statistics,
/// losses, sums and everything per sequence stay f32; outputs keep their types.
graph::Graph to_bf16(const graph::Graph& graph);

}  // namespace muster::passes
