#include "train/gradient_norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace muster::train {
namespace {

constexpr int64_t kChunk = 1 << 16;  // elements: fixed, so that the partial sums are

using F4 = float __attribute__((vector_size(16)));
using D4 = double __attribute__((vector_size(32)));

double sum_of_squares(const float* x, int64_t n) {
  D4 a{}, b{};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    F4 lo, hi;
    std::memcpy(&lo, x + i, sizeof lo);
    std::memcpy(&hi, x + i + 4, sizeof hi);
    const D4 dl = __builtin_convertvector(lo, D4), dh = __builtin_convertvector(hi, D4);
    a += dl * dl;
    b += dh * dh;
  }
  a += b;
  double sum = (a[0] + a[1]) + (a[2] + a[3]);
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

struct Piece {
  const float* data;
  int64_t size;
};

}  // namespace

double global_norm(const models::Parameters& gradients, ThreadPool& threads) {
  std::vector<Piece> pieces;
  for (const auto& [name, tensor] : gradients) {
    const auto values = tensor.as<float>();
    for (int64_t begin = 0; begin < tensor.elements(); begin += kChunk)
      pieces.push_back({values.data() + begin, std::min(kChunk, tensor.elements() - begin)});
  }
  std::vector<double> partial(pieces.size());
  threads.parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t c) {
    const auto i = static_cast<size_t>(c);
    partial[i] = sum_of_squares(pieces[i].data, pieces[i].size);
  });
  double sum = 0;
  for (const double p : partial) sum += p;
  return std::sqrt(sum);
}

double clip_factor(double norm, double max_norm) { return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0; }

}  // namespace muster::train
