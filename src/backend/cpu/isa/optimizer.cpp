// AdamW in one pass over memory, LAMB in two, the gradient norm and the check for broken gradients.
#include "backend/cpu/isa/loops.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {
namespace {

/// The numbers of one step, rounded once.
struct Step {
  float decay, beta1, one_minus_beta1, beta2, one_minus_beta2, step_size, inverse_root, eps, grad_scale;
  bool zero_grad;

  explicit Step(const AdamW& p)
      : beta1(static_cast<float>(p.beta1)),
        one_minus_beta1(static_cast<float>(1.0 - p.beta1)),
        beta2(static_cast<float>(p.beta2)),
        one_minus_beta2(static_cast<float>(1.0 - p.beta2)),
        eps(static_cast<float>(p.eps)),
        grad_scale(p.grad_scale),
        zero_grad(p.zero_grad) {
    decay = static_cast<float>(1.0 - p.lr * p.weight_decay);
    step_size = static_cast<float>(p.lr / p.bias_correction1);
    inverse_root = static_cast<float>(1.0 / __builtin_sqrt(p.bias_correction2));
  }
};

void update(const Step& s, const AdamWArrays& a, int64_t begin, int64_t end) {
  each_vector(end - begin, [&](int64_t offset, int count) {
    const int64_t i = begin + offset;
    const VecF g = load_n(a.grad + i, count) * s.grad_scale;
    const VecF m = fma(load_n(a.m + i, count), splat(s.beta1), s.one_minus_beta1 * g);
    const VecF v = fma(load_n(a.v + i, count), splat(s.beta2), s.one_minus_beta2 * g * g);
    const VecF p = load_n(a.param + i, count) * s.decay - s.step_size * m / fma(sqrt(v), splat(s.inverse_root), splat(s.eps));
    store_n(a.m + i, m, count);
    store_n(a.v + i, v, count);
    store_n(a.param + i, p, count);
    if (a.param_bf16 != nullptr) store_n(a.param_bf16 + i, p, count);
    if (s.zero_grad) store_n(a.grad + i, VecF{}, count);
  });
}

using VecHalfF = float __attribute__((vector_size(kLanes * 2)));
using VecD = double __attribute__((vector_size(kLanes * 4)));

/// Sum of squares in f64, in one order.
struct Squares {
  VecD low{}, high{};
  void add(VecF x) {
    float lanes[kLanes];
    store(lanes, x);
    VecHalfF a, b;
    std::memcpy(&a, lanes, sizeof a);
    std::memcpy(&b, lanes + kLanes / 2, sizeof b);
    const VecD da = __builtin_convertvector(a, VecD), db = __builtin_convertvector(b, VecD);
    low += da * da;
    high += db * db;
  }
  [[nodiscard]] double total() const {
    const VecD both = low + high;
    double sum = 0.0;
    for (int i = 0; i < kLanes / 2; ++i) sum += both[i];
    return sum;
  }
};

/// LAMB's update of some elements, from moments that are up to date.
struct LambStep {
  float inverse1, inverse2, eps, decay;
  explicit LambStep(const AdamW& p)
      : inverse1(static_cast<float>(1.0 / p.bias_correction1)),
        inverse2(static_cast<float>(1.0 / p.bias_correction2)),
        eps(static_cast<float>(p.eps)),
        decay(static_cast<float>(p.weight_decay)) {}
  [[nodiscard]] VecF update(VecF p, VecF m, VecF v) const { return fma(p, splat(decay), m * inverse1 / (sqrt(v * inverse2) + eps)); }
};

}  // namespace

void lamb(const Context& context, const AdamW& p, const AdamWArrays& a, int64_t n) {
  const Step step(p);
  const LambStep lamb_step(p);
  const int64_t chunks = (n + kChunkElements - 1) / kChunkElements;
  auto* partials = reinterpret_cast<double*>(scratch(context.workspace, static_cast<size_t>(2 * chunks) * sizeof(double)));
  parallel_ranges(context, n, kChunkElements, [&](int64_t begin, int64_t end, int) {
    Squares weights, updates;
    each_vector(end - begin, [&](int64_t offset, int count) {  // lanes beyond count are zero in all arrays, and in u
      const int64_t i = begin + offset;
      const VecF g = load_n(a.grad + i, count) * step.grad_scale, w = load_n(a.param + i, count);
      const VecF m = fma(load_n(a.m + i, count), splat(step.beta1), step.one_minus_beta1 * g);
      const VecF v = fma(load_n(a.v + i, count), splat(step.beta2), step.one_minus_beta2 * g * g);
      store_n(a.m + i, m, count);
      store_n(a.v + i, v, count);
      weights.add(w);
      updates.add(lamb_step.update(w, m, v));
    });
    partials[2 * (begin / kChunkElements)] = weights.total();
    partials[2 * (begin / kChunkElements) + 1] = updates.total();
  });
  double weights = 0.0, updates = 0.0;
  for (int64_t c = 0; c < chunks; ++c) weights += partials[2 * c], updates += partials[2 * c + 1];
  const bool adapts = p.weight_decay != 0 && weights > 0 && updates > 0;
  const auto rate = static_cast<float>(p.lr * (adapts ? __builtin_sqrt(weights / updates) : 1.0));
  parallel_ranges(context, n, kChunkElements, [&](int64_t begin, int64_t end, int) {
    each_vector(end - begin, [&](int64_t offset, int count) {
      const int64_t i = begin + offset;
      const VecF w = load_n(a.param + i, count);
      store_n(a.param + i, w - rate * lamb_step.update(w, load_n(a.m + i, count), load_n(a.v + i, count)), count);
    });
  });
}

void adamw(const Context& context, const AdamW& p, const AdamWArrays& arrays, int64_t n) {
  const Step step(p);
  parallel_ranges(context, n, kChunkElements, [&](int64_t begin, int64_t end, int) { update(step, arrays, begin, end); });
}

void adamw_rows(const Context& context, const AdamW& p, const AdamWArrays& arrays, const int32_t* rows, int64_t n_rows, int64_t width) {
  const Step step(p);
  parallel_ranges(context, n_rows, rows_per_chunk(width), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) update(step, arrays, rows[i] * width, (rows[i] + 1) * width);
  });
}

double sum_of_squares(const Context& context, const float* x, int64_t n) {
  const int64_t chunks = (n + kChunkElements - 1) / kChunkElements;
  auto* partials = reinterpret_cast<double*>(scratch(context.workspace, static_cast<size_t>(chunks) * sizeof(double)));
  parallel_ranges(context, n, kChunkElements, [&](int64_t begin, int64_t end, int) {
    Squares squares;
    each_vector(end - begin, [&](int64_t i, int count) { squares.add(load_n(x + begin + i, count)); });
    partials[begin / kChunkElements] = squares.total();
  });
  double total = 0.0;
  for (int64_t c = 0; c < chunks; ++c) total += partials[c];
  return total;
}

bool has_nonfinite(const Context& context, DType dtype, const void* x, int64_t n) {
  const int64_t chunks = (n + kChunkElements - 1) / kChunkElements;
  auto* found = reinterpret_cast<bool*>(scratch(context.workspace, static_cast<size_t>(chunks)));
  with_dtype(dtype, [&](auto t) {
    const auto* from = static_cast<const decltype(t)*>(x);
    parallel_ranges(context, n, kChunkElements, [&](int64_t begin, int64_t end, int) {
      VecF broken{};  // x - x is NaN for infinities and NaN
      each_vector(end - begin, [&](int64_t i, int count) {
        const VecF v = load_n(from + begin + i, count);
        broken += v - v;
      });
      const float total = sum(broken);
      found[begin / kChunkElements] = total != total;
    });
  });
  for (int64_t c = 0; c < chunks; ++c)
    if (found[c]) return true;
  return false;
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
