// Multi-head self attention over packed sequences, and its gradient, one query at a time.
#include <cmath>

#include "backend/ref/ops.h"
#include "core/dropout_mask.h"

namespace muster::ref {
namespace {

/// The sizes of an attention and where things lie: qkv is [T, 3 heads d] = q | k | v, each [heads, d].
struct Layout {
  int64_t heads, size, row;   // row: 3 heads d
  std::vector<int64_t> ends;  // cu_seqlens

  [[nodiscard]] int64_t q(int64_t t, int64_t h) const { return t * row + h * size; }
  [[nodiscard]] int64_t k(int64_t t, int64_t h) const { return t * row + row / 3 + h * size; }
  [[nodiscard]] int64_t v(int64_t t, int64_t h) const { return t * row + 2 * row / 3 + h * size; }
  [[nodiscard]] int64_t out(int64_t t, int64_t h) const { return t * row / 3 + h * size; }
  [[nodiscard]] double scale() const { return 1 / std::sqrt(static_cast<double>(size)); }
};

/// cu_seqlens must rise from 0 to T.
Layout layout_of(const Call& call) {
  const Array &qkv = call.in(0), &cu = call.in(1);
  Layout l{call.node.attrs.heads, qkv.dim(1) / 3 / call.node.attrs.heads, qkv.dim(1), {}};
  for (const double end : cu.values) {
    const auto e = static_cast<int64_t>(end);
    if (l.ends.empty() ? e != 0 : e < l.ends.back())
      throw Error(ErrorKind::invalid_argument, "[{}] cu_seqlens[{}] is {}: it must start at 0 and never fall", call.name(), l.ends.size(),
                  e);
    l.ends.push_back(e);
  }
  const int64_t last = l.ends.empty() ? -1 : l.ends.back();
  if (last != qkv.dim(0))
    throw Error(ErrorKind::invalid_argument, "[{}] cu_seqlens ends at {}, qkv has {} tokens", call.name(), last, qkv.dim(0));
  return l;
}

double product(const Array& a, int64_t at, const Array& b, int64_t bt, int64_t size) {
  double sum = 0;
  for (int64_t c = 0; c < size; ++c) sum += a[at + c] * b[bt + c];
  return sum;
}

/// What dropout multiplies the probability by that query t gives to key j (counted from the sequence's start).
double factor_of(const Call& call, int64_t t, int64_t h, int64_t j) {
  if (call.node.attrs.rate == 0) return 1;
  return dropout_factor_of(call, attention_dropout_index(t, call.node.attrs.heads, h, j));
}

}  // namespace

/// Per head and sequence: out = dropout(softmax(q k^T / sqrt(d))) v (Vaswani et al. 2017). Second output: log of the softmax's
/// denominator, of the scaled scores.
void attention(Call& call) {
  const Layout l = layout_of(call);
  const Array& qkv = call.in(0);
  for (size_t s = 0; s + 1 < l.ends.size(); ++s)
    for (int64_t h = 0; h < l.heads; ++h)
      for (int64_t t = l.ends[s]; t < l.ends[s + 1]; ++t) {
        const int64_t first = l.ends[s], length = l.ends[s + 1] - first;
        std::vector<double> scores(static_cast<size_t>(length));
        for (int64_t j = 0; j < length; ++j)
          scores[static_cast<size_t>(j)] = product(qkv, l.q(t, h), qkv, l.k(first + j, h), l.size) * l.scale();
        double largest = scores[0], sum = 0;
        for (const double x : scores) largest = std::fmax(largest, x);
        for (const double x : scores) sum += std::exp(x - largest);
        const double lse = call.out(1)[t * l.heads + h] = largest + std::log(sum);
        for (int64_t j = 0; j < length; ++j) {
          const double p = std::exp(scores[static_cast<size_t>(j)] - lse) * factor_of(call, t, h, j);
          for (int64_t c = 0; c < l.size; ++c) call.out(0)[l.out(t, h) + c] += p * qkv[l.v(first + j, h) + c];
        }
      }
}

/// Operands: qkv, cu_seqlens, out, log-sum-exp, cotangent of out. With p the probabilities, f the dropout's factors, s the scores:
/// dv_j += p f ct; ds = p (f ct.v_j - ct.out); dq += ds k_j / sqrt(d); dk_j += ds q / sqrt(d) (Dao 2023, FlashAttention-2, section 2.3).
void attention_grad(Call& call) {
  const Layout l = layout_of(call);
  const Array &qkv = call.in(0), &out = call.in(2), &lse = call.in(3), &ct = call.in(4);
  Array& d = call.out();
  for (size_t s = 0; s + 1 < l.ends.size(); ++s)
    for (int64_t h = 0; h < l.heads; ++h)
      for (int64_t t = l.ends[s]; t < l.ends[s + 1]; ++t) {
        const double ct_out = product(ct, l.out(t, h), out, l.out(t, h), l.size);
        for (int64_t key = l.ends[s]; key < l.ends[s + 1]; ++key) {
          const double score = product(qkv, l.q(t, h), qkv, l.k(key, h), l.size) * l.scale();
          const double p = std::exp(score - lse[t * l.heads + h]), f = factor_of(call, t, h, key - l.ends[s]);
          const double ds = p * (f * product(ct, l.out(t, h), qkv, l.v(key, h), l.size) - ct_out) * l.scale();
          for (int64_t c = 0; c < l.size; ++c) {
            d[l.v(key, h) + c] += p * f * ct[l.out(t, h) + c];
            d[l.q(t, h) + c] += ds * qkv[l.k(key, h) + c];
            d[l.k(key, h) + c] += ds * qkv[l.q(t, h) + c];
          }
        }
      }
}

}  // namespace muster::ref
