// Compares the gradient of a graph with central differences of the reference backend in f64.
#pragma once
#include <string>
#include <vector>

#include "backend/ref/ref.h"
#include "graph/builder.h"

namespace muster::autodiff::testing {

/// A small program and the values to run it on.
struct Case {
  graph::Graph graph;
  graph::Value result;  // any float shape; the loss is its sum, weighted by random numbers
  ref::Values leaves;
  graph::SymbolValues symbols{1, 5, 2, 3};
  uint64_t seed = 7;
};

/// `n` numbers of Normal(0, 1) from a stream of their own.
std::vector<double> normal(int64_t n, uint64_t stream);
/// `n` numbers in [low, high).
std::vector<double> uniform(int64_t n, uint64_t stream, double low, double high);

/// Adds an f32 input with values from `values`; its size follows from the case's symbols.
graph::Value float_leaf(Case& c, const std::string& name, std::vector<graph::Dim> dims, std::vector<double> values);
graph::Value normal_leaf(Case& c, const std::string& name, std::vector<graph::Dim> dims);
graph::Value integer_leaf(Case& c, const std::string& name, std::vector<graph::Dim> dims, std::vector<double> values);

/// Fails the test where d(sum of weighted result)/d(float leaf element) is off by more than `tolerance` x max(1, its size).
void expect_gradients_match(Case c, double tolerance = 1e-7);

}  // namespace muster::autodiff::testing
