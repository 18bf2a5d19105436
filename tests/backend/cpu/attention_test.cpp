// Attention against a naive f64 one on uneven batches, its gradient against the naive gradient (itself checked by finite differences).
#include "core/error.h"
#include "kernel_fixture.h"

namespace muster::cpu {
namespace {

struct Case {
  std::vector<int32_t> lengths;
  int64_t heads, head_size;
  double rate = 0.0;
  DType dtype = DType::f32;

  [[nodiscard]] std::vector<int32_t> cu_seqlens() const {
    std::vector<int32_t> cu{0};
    for (const int32_t n : lengths) cu.push_back(cu.back() + n);
    return cu;
  }
  [[nodiscard]] int64_t tokens() const { return cu_seqlens().back(); }
  [[nodiscard]] int64_t width() const { return heads * head_size; }
  [[nodiscard]] size_t elements() const { return static_cast<size_t>(tokens() * width()); }
  [[nodiscard]] Dropout dropout() const { return {dropout_rate(rate), 77, 5}; }
  [[nodiscard]] std::string text() const {
    std::string s = cpu::text(dtype, {heads, head_size}) + " rate " + std::to_string(rate) + " lengths";
    for (const int32_t n : lengths) s += " " + std::to_string(n);
    return s;
  }
};

struct Result {
  std::vector<double> out, lse, d_qkv;
};

/// The formula, one query of one head at a time. With `ct`, also the gradient of sum(ct * out).
Result naive(const Case& c, const std::vector<double>& qkv, const std::vector<double>& ct) {
  const std::vector<int32_t> cu = c.cu_seqlens();
  const int64_t w = c.width(), d = c.head_size;
  const double scale = 1.0 / std::sqrt(static_cast<double>(d));
  Result r{std::vector<double>(c.elements()), std::vector<double>(static_cast<size_t>(c.tokens() * c.heads)),
           std::vector<double>(ct.empty() ? 0 : 3 * c.elements())};
  const auto at = [&](int64_t t, int64_t part, int64_t h, int64_t i) { return static_cast<size_t>(t * 3 * w + part * w + h * d + i); };
  const auto row = [&](int64_t t, int64_t h, int64_t i) { return static_cast<size_t>(t * w + h * d + i); };
  for (size_t s = 0; s + 1 < cu.size(); ++s)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t t = cu[s]; t < cu[s + 1]; ++t) {
        const int64_t begin = cu[s], n = cu[s + 1] - begin;
        std::vector<double> p(static_cast<size_t>(n)), factor(p), dp(p);
        double largest = -INFINITY, total = 0, delta = 0;
        for (int64_t j = 0; j < n; ++j) {
          double score = 0;
          for (int64_t i = 0; i < d; ++i) score += qkv[at(t, 0, h, i)] * qkv[at(begin + j, 1, h, i)];
          p[static_cast<size_t>(j)] = score * scale;
          largest = std::max(largest, score * scale);
        }
        for (double& v : p) total += v = std::exp(v - largest);
        r.lse[static_cast<size_t>(t * c.heads + h)] = largest + std::log(total);
        for (int64_t j = 0; j < n; ++j) {
          const auto k = static_cast<size_t>(j);
          p[k] /= total;
          const Dropout mask = c.dropout();
          factor[k] = static_cast<double>(dropout_factor(mask.rate, mask.seed, mask.stream, attention_dropout_index(t, c.heads, h, j)));
          for (int64_t i = 0; i < d; ++i) r.out[row(t, h, i)] += p[k] * factor[k] * qkv[at(begin + j, 2, h, i)];
        }
        if (ct.empty()) continue;
        for (int64_t j = 0; j < n; ++j) {
          const auto k = static_cast<size_t>(j);
          for (int64_t i = 0; i < d; ++i) {
            dp[k] += ct[row(t, h, i)] * qkv[at(begin + j, 2, h, i)] * factor[k];
            r.d_qkv[at(begin + j, 2, h, i)] += p[k] * factor[k] * ct[row(t, h, i)];
          }
          delta += dp[k] * p[k];
        }
        for (int64_t j = 0; j < n; ++j) {
          const auto k = static_cast<size_t>(j);
          const double ds = p[k] * (dp[k] - delta) * scale;
          for (int64_t i = 0; i < d; ++i) {
            r.d_qkv[at(t, 0, h, i)] += ds * qkv[at(begin + j, 1, h, i)];
            r.d_qkv[at(begin + j, 1, h, i)] += ds * qkv[at(t, 0, h, i)];
          }
        }
      }
  return r;
}

class AttentionTest : public KernelTest {
 protected:
  struct Run {
    Array out, lse, d_qkv;
  };
  Run run(const KernelContext& context, const Case& c, Array& qkv, Array& ct) {
    const std::vector<int32_t> cu = c.cu_seqlens();
    Run r{Array(c.dtype, c.elements()), Array(DType::f32, static_cast<size_t>(c.tokens() * c.heads)), Array(c.dtype, 3 * c.elements())};
    const auto sequences = static_cast<int64_t>(c.lengths.size());
    k().attention(context, {.dtype = c.dtype,
                            .sequences = sequences,
                            .heads = c.heads,
                            .head_size = c.head_size,
                            .qkv = qkv.data(),
                            .cu_seqlens = cu.data(),
                            .dropout = c.dropout(),
                            .out = r.out.data(),
                            .lse = r.lse.f32()});
    k().attention_grad(context, {.dtype = c.dtype,
                                 .sequences = sequences,
                                 .heads = c.heads,
                                 .head_size = c.head_size,
                                 .qkv = qkv.data(),
                                 .cu_seqlens = cu.data(),
                                 .dropout = c.dropout(),
                                 .out = r.out.data(),
                                 .lse = r.lse.f32(),
                                 .d_out = ct.data(),
                                 .d_qkv = r.d_qkv.data()});
    return r;
  }
  void expect_naive(const Case& c, double size = 1.0) {
    Array qkv = Array::random(c.dtype, 3 * c.elements(), 31, size), ct = Array::random(c.dtype, c.elements(), 32);
    const Run got = run(context(), c, qkv, ct);
    const Result want = naive(c, qkv.values(), ct.values());
    const double tolerance = c.dtype == DType::bf16 ? 4.5e-3 : 5e-6;
    expect_close(got.out, want.out, tolerance, "out, " + c.text());
    expect_close(got.lse, want.lse, 1e-5, "lse, " + c.text());
    expect_close(got.d_qkv, want.d_qkv, 2 * tolerance, "d_qkv, " + c.text());
  }
};

TEST(NaiveAttention, GradientMatchesFiniteDifferences) {
  const Case c{{3, 0, 1, 4}, 2, 3, 0.3};
  const std::vector<double> qkv = Array::random(DType::f32, 3 * c.elements(), 1).values(),
                            ct = Array::random(DType::f32, c.elements(), 2).values();
  const auto loss = [&](const std::vector<double>& at) {
    const Result r = naive(c, at, {});
    double total = 0;
    for (size_t i = 0; i < ct.size(); ++i) total += ct[i] * r.out[i];
    return total;
  };
  expect_close(naive(c, qkv, ct).d_qkv, differences(qkv, loss), 1e-7, "naive");
}

TEST_P(AttentionTest, MatchesTheFormulaOnUnevenBatches) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const double rate : {0.0, 0.2}) {
      expect_naive({{1}, 1, 1, rate, dtype});
      expect_naive({{5, 0, 0, 2}, 2, 7, rate, dtype});
      expect_naive({{0}, 2, 32, rate, dtype});
      expect_naive({{}, 2, 32, rate, dtype});
      expect_naive({{25, 1, 64, 130, 8, 65, 48, 49}, 2, 32, rate, dtype});
      expect_naive({{17, 75, 3}, 3, 64, rate, dtype});
      expect_naive({{33, 4}, 1, 128, rate, dtype});
      expect_naive({{9, 100}, 2, 20, rate, dtype});
      expect_naive({{300, 2}, 1, 40, rate, dtype});
    }
}

TEST_P(AttentionTest, LargeScoresStayFinite) {
  expect_naive({{70, 9}, 2, 32, 0.0}, 6.0);
  Case c{{66}, 1, 32};
  Array qkv = Array::random(DType::f32, 3 * c.elements(), 3, 100.0), ct = Array::random(DType::f32, c.elements(), 4);
  const Run got = run(context(), c, qkv, ct);
  for (size_t i = 0; i < got.out.size(); ++i) ASSERT_TRUE(std::isfinite(got.out[i]));
  for (size_t i = 0; i < got.d_qkv.size(); ++i) ASSERT_TRUE(std::isfinite(got.d_qkv[i]));
}

TEST_P(AttentionTest, ANaNStaysInItsSequence) {
  const Case c{{20, 30}, 2, 32};
  Array qkv = Array::random(DType::f32, 3 * c.elements(), 3), ct = Array::random(DType::f32, c.elements(), 4);
  qkv.set(0, NAN);  // query of token 0, head 0
  const Run got = run(context(), c, qkv, ct);
  EXPECT_TRUE(std::isnan(got.out[0]));
  for (size_t i = static_cast<size_t>(20 * c.width()); i < got.out.size(); ++i) ASSERT_TRUE(std::isfinite(got.out[i]));
  for (size_t i = static_cast<size_t>(20 * 3 * c.width()); i < got.d_qkv.size(); ++i) ASSERT_TRUE(std::isfinite(got.d_qkv[i]));
}

TEST_P(AttentionTest, ALongSequenceMatches) {
  const Case c{{3, 1100, 20}, 1, 16};
  expect_naive(c);
}

TEST_P(AttentionTest, ASequenceDoesNotDependOnItsNeighbours) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Case batch{{12, 75, 300, 1}, 2, 32, 0.0, dtype}, alone{{75}, 2, 32, 0.0, dtype};
    Array qkv = Array::random(dtype, 3 * batch.elements(), 3), ct = Array::random(dtype, batch.elements(), 4);
    const size_t token = static_cast<size_t>(batch.width()), first = 12 * token;
    Array one(dtype, 3 * alone.elements()), one_ct(dtype, alone.elements());
    for (size_t i = 0; i < one.size(); ++i) one.set(i, qkv[3 * first + i]);
    for (size_t i = 0; i < one_ct.size(); ++i) one_ct.set(i, ct[first + i]);
    const Run together = run(context(), batch, qkv, ct), single = run(context(), alone, one, one_ct);
    for (size_t i = 0; i < single.out.size(); ++i) ASSERT_EQ(single.out[i], together.out[first + i]);
    for (size_t i = 0; i < single.d_qkv.size(); ++i) ASSERT_EQ(single.d_qkv[i], together.d_qkv[3 * first + i]);
  }
}

TEST_P(AttentionTest, ThreadsDoNotChangeBits) {
  const Case c{{25, 1, 64, 530, 8, 33, 40, 17}, 3, 32, 0.1};
  Array qkv = Array::random(DType::f32, 3 * c.elements(), 3), ct = Array::random(DType::f32, c.elements(), 4);
  expect_same_bits([&](const KernelContext& context) {
    const Run r = run(context, c, qkv, ct);
    std::vector<std::byte> all = r.out.bytes();
    for (const Array* a : {&r.lse, &r.d_qkv}) all.insert(all.end(), a->bytes().begin(), a->bytes().end());
    return all;
  });
}

TEST_P(AttentionTest, BrokenSequenceBordersAreErrors) {
  Array qkv(DType::f32, 3 * 8 * 4), out(DType::f32, 8 * 4);
  for (const std::vector<int32_t>& cu : {std::vector<int32_t>{0, 5, 3}, {1, 4}, {-2, 4}, {0, -1}}) {
    const Attention p{.sequences = static_cast<int64_t>(cu.size()) - 1,
                      .heads = 1,
                      .head_size = 4,
                      .qkv = qkv.data(),
                      .cu_seqlens = cu.data(),
                      .out = out.data()};
    EXPECT_THROW(k().attention(context(), p), Error);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, AttentionTest, testing::ValuesIn(levels()), level_name);

}  // namespace
}  // namespace muster::cpu
