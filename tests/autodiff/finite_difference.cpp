#include "autodiff/finite_difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "autodiff/gradient.h"
#include "core/hash.h"
#include "core/philox.h"

namespace muster::autodiff::testing {

using graph::Builder;
using graph::Dim;
using graph::Op;
using graph::Type;
using graph::Value;

std::vector<double> normal(int64_t n, uint64_t stream) {
  Philox random(2024, stream);
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values) v = random.normal();
  return values;
}

std::vector<double> uniform(int64_t n, uint64_t stream, double low, double high) {
  Philox random(2024, stream);
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values) v = low + (high - low) * static_cast<double>(random.uniform());
  return values;
}

Value float_leaf(Case& c, const std::string& name, std::vector<Dim> dims, std::vector<double> values) {
  c.leaves[name] = std::move(values);
  return Builder(c.graph).input(name, DType::f32, std::move(dims));
}

Value normal_leaf(Case& c, const std::string& name, std::vector<Dim> dims) {
  const int64_t n = element_count(Type{DType::f32, dims}.shape(c.symbols));
  return float_leaf(c, name, std::move(dims), normal(n, fnv1a(name)));
}

Value integer_leaf(Case& c, const std::string& name, std::vector<Dim> dims, std::vector<double> values) {
  c.leaves[name] = std::move(values);
  return Builder(c.graph).input(name, DType::i32, std::move(dims));
}

namespace {

/// The result becomes a scalar that depends on each of its elements differently.
Value weighted_sum(Case& c) {
  Builder b(c.graph);
  const Type type = b.type(c.result);
  const Value weight = normal_leaf(c, "weight of the result", type.dims);
  const Value product = b.mul(b.convert(c.result, DType::f32), weight);
  std::vector<int64_t> axes(type.rank());
  std::iota(axes.begin(), axes.end(), 0);
  return axes.empty() ? product : b.reduce_sum(product, axes);
}

}  // namespace

void expect_gradients_match(Case c, double tolerance) {
  std::vector<std::string> names;
  std::vector<Value> wrt;
  for (const Op kind : {Op::parameter, Op::input})
    for (const int32_t n : c.graph.leaves(kind)) {
      const graph::Node& leaf = c.graph.nodes[static_cast<size_t>(n)];
      if (is_float(leaf.types[0].dtype)) names.push_back(leaf.name), wrt.push_back({n, 0});
    }
  ASSERT_FALSE(wrt.empty());
  const Value loss = weighted_sum(c);
  graph::Graph forward = c.graph;
  forward.outputs = {{"loss", loss}};
  const std::vector<Value> gradients = gradient(c.graph, loss, wrt);
  for (size_t k = 0; k < wrt.size(); ++k) {
    EXPECT_EQ(to_string(c.graph.type(gradients[k])), to_string(c.graph.type(wrt[k]))) << names[k];
    c.graph.outputs.push_back({names[k], gradients[k]});
  }
  const ref::Values analytic = ref::evaluate(c.graph, c.leaves, c.symbols, c.seed);
  const auto loss_at = [&](const ref::Values& leaves) { return ref::evaluate(forward, leaves, c.symbols, c.seed).at("loss")[0]; };
  for (const std::string& name : names)
    for (size_t i = 0; i < c.leaves.at(name).size(); ++i) {
      const double step = 1e-5;
      ref::Values leaves = c.leaves;
      leaves[name][i] = c.leaves[name][i] + step;
      const double above = loss_at(leaves);
      leaves[name][i] = c.leaves[name][i] - step;
      const double numeric = (above - loss_at(leaves)) / (2 * step);
      EXPECT_NEAR(analytic.at(name)[i], numeric, tolerance * std::fmax(1, std::fabs(numeric))) << "d/d " << name << "[" << i << "]";
    }
}

}  // namespace muster::autodiff::testing
