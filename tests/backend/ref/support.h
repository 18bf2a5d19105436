// Runs one op of the reference backend on numbers.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "backend/ref/ref.h"
#include "graph/builder.h"

namespace muster::ref::testing {

/// A graph under construction with the values of its leaves; x0, x1, ... in the order of leaf().
struct Program {
  graph::Graph graph;
  graph::Builder b{graph};
  Values leaves;
  graph::SymbolValues symbols{1, 0, 0, 0};

  graph::Value leaf(std::vector<graph::Dim> dims, std::vector<double> values, DType dtype = DType::f32) {
    const std::string name = fmt::format("x{}", leaves.size());
    leaves[name] = std::move(values);
    return b.input(name, dtype, std::move(dims));
  }
  std::vector<double> run(graph::Value v, uint64_t seed = 0) {
    graph.outputs = {{"result", v}};
    return evaluate(graph, leaves, symbols, seed).at("result");
  }
};

/// The message of the Error that `action` throws, which must be of `kind`.
inline std::string message_of(const std::function<void()>& action, ErrorKind kind = ErrorKind::invalid_argument) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace muster::ref::testing
