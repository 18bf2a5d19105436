// Ops that take each element alone. The formulas' sources stand at the ops.
#include <cmath>
#include <numbers>

#include "backend/ref/ops.h"
#include "core/dropout_mask.h"

namespace muster::ref {

double rounded(double value, DType dtype) {
  if (dtype == DType::bf16) return to_f32(to_bf16(static_cast<float>(value)));
  if (dtype == DType::f16) return to_f32(to_f16(static_cast<float>(value)));
  return value;
}

double dropout_factor_of(const Call& call, uint64_t index) {
  return dropout_factor(dropout_rate(call.node.attrs.rate), call.seed, call.node.attrs.stream, index);
}

void unary(Call& call, double (*f)(double)) {
  for (size_t i = 0; i < call.out().values.size(); ++i) call.out().values[i] = f(call.in(0).values[i]);
}

void binary(Call& call, double (*f)(double, double)) {
  for (size_t i = 0; i < call.out().values.size(); ++i) call.out().values[i] = f(call.in(0).values[i], call.in(1).values[i]);
}

void select(Call& call) {
  for (size_t i = 0; i < call.out().values.size(); ++i) call.out().values[i] = call.in(call.in(0).values[i] != 0 ? 1 : 2).values[i];
}

/// Float to integer drops the fraction; anything to bool asks whether it is not zero.
void convert(Call& call) {
  const DType to = call.out().dtype;
  for (size_t i = 0; i < call.out().values.size(); ++i) {
    const double x = call.in(0).values[i];
    call.out().values[i] = to == DType::boolean ? (x != 0 ? 1 : 0) : is_float(to) ? x : std::trunc(x);
  }
}

void dropout(Call& call) {
  for (size_t i = 0; i < call.out().values.size(); ++i) call.out().values[i] = call.in(0).values[i] * dropout_factor_of(call, i);
}

namespace {
constexpr double kTanhScale = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double kTanhCubic = 0.044715;
}  // namespace

/// Hendrycks and Gimpel 2016: x Phi(x), or 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
double gelu(double x, bool approximate) {
  if (approximate) return 0.5 * x * (1 + std::tanh(kTanhScale * (x + kTanhCubic * x * x * x)));
  return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
}

double gelu_derivative(double x, bool approximate) {
  if (approximate) {
    const double t = std::tanh(kTanhScale * (x + kTanhCubic * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kTanhScale * (1 + 3 * kTanhCubic * x * x);
  }
  const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * density;
}

void gelu(Call& call) {
  for (size_t i = 0; i < call.out().values.size(); ++i) call.out().values[i] = gelu(call.in(0).values[i], call.node.attrs.approximate);
}

/// Operands: x, cotangent.
void gelu_grad(Call& call) {
  for (size_t i = 0; i < call.out().values.size(); ++i)
    call.out().values[i] = call.in(1).values[i] * gelu_derivative(call.in(0).values[i], call.node.attrs.approximate);
}

/// Loshchilov and Hutter 2019, in the order of torch.optim.AdamW. Operands: parameter, gradient, first and second moment, and
/// [learning rate, 1 - beta1^step, 1 - beta2^step, what the gradient is multiplied by]. Results: parameter, first and second moment.
void adamw(Call& call) {
  const graph::Attrs& a = call.node.attrs;
  const Array& scalars = call.in(4);
  const double rate = scalars[0], correction1 = scalars[1], correction2 = scalars[2], gradient_scale = scalars[3];
  for (size_t i = 0; i < call.out().values.size(); ++i) {
    const double g = call.in(1).values[i] * gradient_scale;
    const double decayed = call.in(0).values[i] * (1 - rate * a.weight_decay);
    const double m = a.beta1 * call.in(2).values[i] + (1 - a.beta1) * g;
    const double v = a.beta2 * call.in(3).values[i] + (1 - a.beta2) * g * g;
    call.out(0).values[i] = decayed - rate / correction1 * m / (std::sqrt(v) / std::sqrt(correction2) + a.value);
    call.out(1).values[i] = m;
    call.out(2).values[i] = v;
  }
}

/// kernels.h has the formula.
void lamb(Call& call) {
  const graph::Attrs& a = call.node.attrs;
  const Array& scalars = call.in(4);
  const double rate = scalars[0], correction1 = scalars[1], correction2 = scalars[2], gradient_scale = scalars[3];
  const size_t part = call.out().values.size() / static_cast<size_t>(a.parts);
  for (size_t first = 0; first < call.out().values.size(); first += part) {
    std::vector<double> update(part);
    double weight_squares = 0, update_squares = 0;
    for (size_t k = 0; k < part; ++k) {
      const size_t i = first + k;
      const double g = call.in(1).values[i] * gradient_scale, p = call.in(0).values[i];
      const double m = a.beta1 * call.in(2).values[i] + (1 - a.beta1) * g;
      const double v = a.beta2 * call.in(3).values[i] + (1 - a.beta2) * g * g;
      update[k] = m / correction1 / (std::sqrt(v / correction2) + a.value) + a.weight_decay * p;
      weight_squares += p * p, update_squares += update[k] * update[k];
      call.out(1).values[i] = m;
      call.out(2).values[i] = v;
    }
    const bool adapts = a.weight_decay != 0 && weight_squares > 0 && update_squares > 0;
    const double ratio = adapts ? std::sqrt(weight_squares / update_squares) : 1;
    for (size_t k = 0; k < part; ++k) call.out(0).values[first + k] = call.in(0).values[first + k] - rate * ratio * update[k];
  }
}

}  // namespace muster::ref
