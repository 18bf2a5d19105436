// Layer norm and softmax cross entropy with their gradients.
#include <cmath>

#include "backend/ref/ops.h"

namespace muster::ref {
namespace {

/// y = gamma (x - mean) rstd + beta per row, with the biased variance (Ba, Kiros, Hinton 2016; PyTorch).
void normalise(const Array& x, const Array& gamma, const Array& beta, double epsilon, Array& y, Array& mean, Array& rstd) {
  const int64_t rows = x.dim(0), width = x.dim(1);
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0, squares = 0;
    for (int64_t c = 0; c < width; ++c) sum += x[r * width + c];
    mean[r] = sum / static_cast<double>(width);
    for (int64_t c = 0; c < width; ++c) squares += (x[r * width + c] - mean[r]) * (x[r * width + c] - mean[r]);
    rstd[r] = 1 / std::sqrt(squares / static_cast<double>(width) + epsilon);
    for (int64_t c = 0; c < width; ++c) y[r * width + c] = gamma[c] * (x[r * width + c] - mean[r]) * rstd[r] + beta[c];
  }
}

/// softmax_cross_entropy leaves rows with a negative label out; a label beyond the classes is an error.
int64_t label_of(const Call& call, int64_t row, int64_t classes) {
  const auto label = static_cast<int64_t>(call.in(1)[row]);
  if (label >= classes)
    throw Error(ErrorKind::invalid_argument, "[{}] label {} of row {} is outside {} classes", call.name(), label, row, classes);
  return label;
}

}  // namespace

void layer_norm(Call& call) { normalise(call.in(0), call.in(1), call.in(2), call.node.attrs.value, call.out(0), call.out(1), call.out(2)); }

/// Operands: x, gamma, mean, rstd, cotangent ct. With xhat = (x - mean) rstd and g = ct gamma:
/// dx = rstd (g - mean(g) - xhat mean(g xhat)), dgamma = sum of ct xhat, dbeta = sum of ct over the rows.
void layer_norm_grad(Call& call) {
  const Array &x = call.in(0), &gamma = call.in(1), &mean = call.in(2), &rstd = call.in(3), &ct = call.in(4);
  const int64_t rows = x.dim(0), width = x.dim(1);
  for (int64_t r = 0; r < rows; ++r) {
    const auto xhat = [&](int64_t c) { return (x[r * width + c] - mean[r]) * rstd[r]; };
    double mean_g = 0, mean_g_xhat = 0;
    for (int64_t c = 0; c < width; ++c) {
      const double g = ct[r * width + c] * gamma[c];
      mean_g += g / static_cast<double>(width);
      mean_g_xhat += g * xhat(c) / static_cast<double>(width);
      call.out(1)[c] += ct[r * width + c] * xhat(c);
      call.out(2)[c] += ct[r * width + c];
    }
    for (int64_t c = 0; c < width; ++c)
      call.out(0)[r * width + c] = rstd[r] * (ct[r * width + c] * gamma[c] - mean_g - xhat(c) * mean_g_xhat);
  }
}

/// losses = (1 - s) (-log p[label]) + s / C sum over classes of (-log p), s = label smoothing (PyTorch's cross_entropy); a row with a
/// negative label has loss 0. Second output: log of the sum of the exponentials.
void softmax_cross_entropy(Call& call) {
  const Array& logits = call.in(0);
  const double smoothing = call.node.attrs.value;
  const int64_t rows = logits.dim(0), classes = logits.dim(1);
  for (int64_t r = 0; r < rows; ++r) {
    const auto at = [&](int64_t c) { return logits[r * classes + c]; };
    double largest = at(0), sum = 0;
    for (int64_t c = 1; c < classes; ++c) largest = std::fmax(largest, at(c));
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(at(c) - largest);
    const double lse = call.out(1)[r] = largest + std::log(sum);
    const int64_t label = label_of(call, r, classes);
    if (label < 0) continue;
    double all = 0;
    for (int64_t c = 0; c < classes; ++c) all += lse - at(c);
    call.out(0)[r] = (1 - smoothing) * (lse - at(label)) + smoothing / static_cast<double>(classes) * all;
  }
}

/// Operands: logits, labels, log-sum-exp, cotangent of the losses. d_logits = ct (p - (1 - s) onehot - s / C).
void softmax_cross_entropy_grad(Call& call) {
  const Array& logits = call.in(0);
  const double smoothing = call.node.attrs.value;
  const int64_t rows = logits.dim(0), classes = logits.dim(1);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t label = label_of(call, r, classes);
    if (label < 0) continue;
    for (int64_t c = 0; c < classes; ++c) {
      const double p = std::exp(logits[r * classes + c] - call.in(2)[r]);
      call.out()[r * classes + c] = call.in(3)[r] * (p - (c == label ? 1 - smoothing : 0) - smoothing / static_cast<double>(classes));
    }
  }
}

}  // namespace muster::ref
