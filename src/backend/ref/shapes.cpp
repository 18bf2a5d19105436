// Ops that move elements, reduce axes, multiply matrices or take rows of a table.
#include <cmath>
#include <functional>
#include <limits>

#include "backend/ref/ops.h"

namespace muster::ref {
namespace {

/// Distance of two neighbours along each axis of a row-major tensor.
std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;) strides[k - 1] = strides[k] * shape[k];
  return strides;
}

/// Goes through `shape` in row-major order and calls visit(i, j): i counts up from 0, j = sum of index[k] * steps[k] is where the same
/// element lies in another tensor. Every op that moves elements is one such walk.
void walk(const Shape& shape, const std::vector<int64_t>& steps, const std::function<void(int64_t, int64_t)>& visit) {
  std::vector<int64_t> index(shape.size(), 0);
  const int64_t n = element_count(shape);
  int64_t j = 0;
  for (int64_t i = 0; i < n; ++i) {
    visit(i, j);
    for (size_t k = shape.size(); k-- > 0;) {
      j += steps[k];
      if (++index[k] < shape[k]) break;
      j -= steps[k] * shape[k];
      index[k] = 0;
    }
  }
}

/// Steps through the result of a reduction while its operand is walked: 0 along the axes that vanish.
std::vector<int64_t> reduction_steps(const Call& call) {
  std::vector<int64_t> steps(call.in(0).shape.size(), 1);
  for (const int64_t a : call.node.attrs.axes) steps[static_cast<size_t>(a)] = 0;
  int64_t stride = 1;
  for (size_t k = steps.size(); k-- > 0;)
    if (steps[k] != 0) steps[k] = stride, stride *= call.in(0).dim(k);
  return steps;
}

/// The row numbers of gather and scatter_add, each checked against the table's height.
std::vector<int64_t> rows_of(const Call& call, const Array& rows, int64_t height) {
  std::vector<int64_t> numbers;
  for (const double r : rows.values) {
    if (r < 0 || r >= static_cast<double>(height))
      throw Error(ErrorKind::invalid_argument, "[{}] row number {} (element {}) is outside a table of {} rows", call.name(),
                  static_cast<int64_t>(r), numbers.size(), height);
    numbers.push_back(static_cast<int64_t>(r));
  }
  return numbers;
}

}  // namespace

void broadcast(Call& call) {
  std::vector<int64_t> steps(call.out().shape.size(), 0);
  const std::vector<int64_t> strides = strides_of(call.in(0).shape);
  for (size_t k = 0; k < strides.size(); ++k) steps[static_cast<size_t>(call.node.attrs.axes[k])] = strides[k];
  walk(call.out().shape, steps, [&](int64_t to, int64_t from) { call.out()[to] = call.in(0)[from]; });
}

void transpose(Call& call) {
  std::vector<int64_t> steps(call.out().shape.size());
  const std::vector<int64_t> strides = strides_of(call.in(0).shape);
  for (size_t k = 0; k < steps.size(); ++k) steps[k] = strides[static_cast<size_t>(call.node.attrs.axes[k])];
  walk(call.out().shape, steps, [&](int64_t to, int64_t from) { call.out()[to] = call.in(0)[from]; });
}

void slice(Call& call) {
  const std::vector<int64_t> strides = strides_of(call.in(0).shape);
  const int64_t first = call.node.attrs.start * strides[static_cast<size_t>(call.node.attrs.axes[0])];
  walk(call.out().shape, strides, [&](int64_t to, int64_t from) { call.out()[to] = call.in(0)[first + from]; });
}

void concat(Call& call) {
  const auto axis = static_cast<size_t>(call.node.attrs.axes[0]);
  const std::vector<int64_t> strides = strides_of(call.out().shape);
  int64_t first = 0;
  for (const Array* part : call.inputs) {
    walk(part->shape, strides, [&](int64_t from, int64_t to) { call.out()[first + to] = (*part)[from]; });
    first += part->dim(axis) * strides[axis];
  }
}

void reduce_sum(Call& call) {
  walk(call.in(0).shape, reduction_steps(call), [&](int64_t from, int64_t to) { call.out()[to] += call.in(0)[from]; });
}

/// A NaN among the elements is the result; nothing to reduce gives minus infinity.
void reduce_max(Call& call) {
  for (double& v : call.out().values) v = -std::numeric_limits<double>::infinity();
  walk(call.in(0).shape, reduction_steps(call), [&](int64_t from, int64_t to) {
    const double x = call.in(0)[from];
    if (std::isnan(x) || x > call.out()[to]) call.out()[to] = x;
  });
}

void dot(Call& call) {
  const graph::Attrs& attrs = call.node.attrs;
  const DType operand = attrs.bf16 ? DType::bf16 : DType::f64;
  const Array &a = call.in(0), &b = call.in(1);
  const int64_t m = call.out().dim(0), n = call.out().dim(1), depth = a.dim(attrs.transpose_a ? 0 : 1);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t k = 0; k < depth; ++k) {
      const double left = rounded(attrs.transpose_a ? a[k * m + i] : a[i * depth + k], operand);
      for (int64_t j = 0; j < n; ++j) call.out()[i * n + j] += left * rounded(attrs.transpose_b ? b[j * depth + k] : b[k * n + j], operand);
    }
}

void gather(Call& call) {
  const int64_t width = call.in(0).dim(1);
  const std::vector<int64_t> rows = rows_of(call, call.in(1), call.in(0).dim(0));
  for (size_t i = 0; i < rows.size(); ++i)
    for (int64_t c = 0; c < width; ++c) call.out()[static_cast<int64_t>(i) * width + c] = call.in(0)[rows[i] * width + c];
}

void scatter_add(Call& call) {
  const int64_t width = call.in(0).dim(1);
  const std::vector<int64_t> rows = rows_of(call, call.in(1), call.out().dim(0));
  for (size_t i = 0; i < rows.size(); ++i)
    for (int64_t c = 0; c < width; ++c) call.out()[rows[i] * width + c] += call.in(0)[static_cast<int64_t>(i) * width + c];
}

}  // namespace muster::ref
