#include "backend/cpu/tuning.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace muster::cpu {
namespace {

constexpr int64_t kRows = 512, kWidth = 768;  // a batch of tweets, BERT-base's commonest side
constexpr double kFlops = 2.0 * kRows * kWidth * kWidth;
constexpr int kRounds = 3;         // the least time of each counts
constexpr double kClearly = 0.96;  // of the time with computed blocks

/// One product on one thread.
class Bench {
 public:
  Bench(Math math, Isa isa) : a_(kRows * kWidth, 1.0f), c_(a_) {
    const std::vector<float> b(kWidth * kWidth, 1.0f);
    b_ = pack({b.data(), DType::f32, kWidth, kWidth, kWidth, false}, math, isa, pool_);
    (void)seconds({});  // grows buffers
  }
  double seconds(const Blocking& blocking) {
    const auto start = std::chrono::steady_clock::now();
    matmul({a_.data(), DType::f32, kRows, kWidth, kWidth, false}, b_, {c_.data(), DType::f32, kWidth, false}, {}, pool_, workspace_,
           blocking);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  ThreadPool pool_{1};
  std::vector<float> a_, c_;
  PackedMatrix b_;
  Workspace workspace_;
};

/// The fastest of `candidates`, the first unless another one clearly is; and the rate with it.
double choose(Math math, Isa isa, const std::vector<Blocking>& candidates, Blocking& best) {
  Bench bench(math, isa);
  std::vector<double> least(candidates.size(), 1e9);
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < candidates.size(); ++i) least[i] = std::min(least[i], bench.seconds(candidates[i]));
  const auto fastest = static_cast<size_t>(std::min_element(least.begin(), least.end()) - least.begin());
  const size_t chosen = least[fastest] < kClearly * least[0] ? fastest : 0;
  best = candidates[chosen];
  return kFlops / least[chosen] / 1e9;
}

std::vector<Blocking> candidates(Isa isa, Math math) {
  const int64_t computed = computed_rows(isa, math, kWidth);
  return {{}, {computed / 2}, {computed * 2}};
}

}  // namespace

Tuning measure_tuning(Isa isa) {
  Tuning t;
  t.f32_gflops = choose(Math::f32, isa, candidates(isa, Math::f32), t.f32);
  // Without tiles, bf16 products run on the f32 kernel: its blocks hold for them too.
  t.bf16_gflops = choose(Math::bf16, isa, isa == Isa::amx ? candidates(isa, Math::bf16) : std::vector<Blocking>{t.f32}, t.bf16);
  return t;
}

}  // namespace muster::cpu
