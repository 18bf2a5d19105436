// Matmul against a naive f64 product over a table of shapes and forms, and its promise that a row's bits depend on that row alone.
#include "backend/cpu/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "backend/cpu/matmul_kernels.h"
#include "core/error.h"
#include "lanes16.h"

namespace muster::cpu {
namespace {

struct Variant {
  std::string name;
  Math math;
  const MatmulKernels* kernels;
};
void PrintTo(const Variant& v, std::ostream* out) { *out << v.name; }

/// What this machine can run, the test-only kernels included.
std::vector<Variant> variants() {
  std::vector<Variant> all{{"avx2", Math::f32, &matmul_kernels(Isa::avx2, Math::f32)},
                           {"avx2_bf16", Math::bf16, &matmul_kernels(Isa::avx2, Math::bf16)},
                           {"lanes16", Math::f32, &lanes16::f32_kernels(Math::f32)},
                           {"lanes16_bf16", Math::bf16, &lanes16::f32_kernels(Math::bf16)},
                           {"emulated_amx", Math::bf16, &lanes16::emulated_amx_kernels()}};
  const CpuInfo cpu = detect_cpu();
  if (cpu.avx512) {
    all.push_back({"avx512", Math::f32, &matmul_kernels(Isa::avx512, Math::f32)});
    all.push_back({"avx512_bf16", Math::bf16, &matmul_kernels(Isa::avx512, Math::bf16)});
  }
  if (cpu.amx_bf16) all.push_back({"amx", Math::bf16, &matmul_kernels(Isa::amx, Math::bf16)});
  return all;
}

/// A matrix in memory: lines of `stride` elements, the gap between lines filled with a value that must neither be read nor changed.
struct Matrix {
  int64_t rows, cols, stride;
  DType dtype;
  bool transposed;
  std::vector<std::byte> bytes;

  static constexpr float kGap = 777.0f;  // exact in bf16

  Matrix(int64_t r, int64_t c, DType d, bool turned, int64_t extra)
      : rows(r),
        cols(c),
        stride((turned ? r : c) + extra),
        dtype(d),
        transposed(turned),
        bytes(size_t((turned ? c : r) * stride) * size_of(d)) {
    for (int64_t i = 0; i < std::ssize(bytes) / int64_t(size_of(d)); ++i) put(i, kGap);
  }
  [[nodiscard]] int64_t at(int64_t i, int64_t j) const { return transposed ? j * stride + i : i * stride + j; }
  void put(int64_t place, float x) {
    if (dtype == DType::f32)
      reinterpret_cast<float*>(bytes.data())[place] = x;
    else
      reinterpret_cast<BF16*>(bytes.data())[place] = to_bf16(x);
  }
  [[nodiscard]] float get(int64_t place) const {
    return dtype == DType::f32 ? reinterpret_cast<const float*>(bytes.data())[place]
                               : to_f32(reinterpret_cast<const BF16*>(bytes.data())[place]);
  }
  void set(int64_t i, int64_t j, float x) { put(at(i, j), x); }
  [[nodiscard]] float operator()(int64_t i, int64_t j) const { return get(at(i, j)); }
  [[nodiscard]] Operand operand() const { return {bytes.data(), dtype, rows, cols, stride, transposed}; }
  [[nodiscard]] Result result(bool accumulate) { return {bytes.data(), dtype, stride, accumulate}; }

  void fill(uint64_t seed) {
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        set(i, j, float(int64_t(x >> 40) - (1 << 23)) / float(1 << 23));
      }
  }
};

/// What the product computes with, row by row (or column by column).
std::vector<double> values(const Matrix& m, Math math, bool by_column) {
  std::vector<double> all;
  all.reserve(size_t(m.rows * m.cols));
  for (int64_t i = 0; i < (by_column ? m.cols : m.rows); ++i)
    for (int64_t j = 0; j < (by_column ? m.rows : m.cols); ++j) {
      const float x = by_column ? m(j, i) : m(i, j);
      all.push_back(math == Math::bf16 ? to_f32(to_bf16(x)) : x);
    }
  return all;
}

struct Case {
  int64_t m, k, n;
  DType a = DType::f32, b = DType::f32, c = DType::f32;
  bool a_transposed = false, b_transposed = false, accumulate = false;
  bool epilogue = false;  // a function writes the result: a bias is added
  int64_t extra = 0;      // of each stride
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.m << "x" << c.k << "x" << c.n << " " << name_of(c.a) << "*" << name_of(c.b) << "->" << name_of(c.c)
       << (c.a_transposed ? " aT" : "") << (c.b_transposed ? " bT" : "") << (c.accumulate ? " +=" : "") << (c.epilogue ? " epilogue" : "")
       << " stride +" << c.extra;
}

/// Every shape in a form that the counter picks, so that forms meet shapes in many ways without a full product.
std::vector<Case> cases() {
  const int64_t shapes[][3] = {{0, 5, 7},     {3, 0, 5},      {1, 1, 1},     {1, 7, 1},      {2, 1, 3},      {1, 768, 2},
                               {6, 16, 16},   {7, 17, 17},    {5, 31, 33},   {13, 33, 15},   {14, 32, 32},   {15, 64, 47},
                               {16, 255, 64}, {17, 257, 65},  {26, 384, 96}, {25, 40, 48},   {50, 700, 33},  {53, 30, 16},
                               {99, 17, 20},  {31, 300, 100}, {32, 312, 31}, {33, 513, 130}, {1, 520, 320},  {2, 520, 130},
                               {3, 512, 130}, {100, 40, 20},  {64, 1024, 8}, {130, 77, 130}, {313, 129, 70}, {40, 700, 1030}};
  std::vector<Case> all;
  int turn = 0;
  for (const auto& s : shapes)
    for (int form = 0; form < 6; ++form, ++turn) {
      Case c{s[0], s[1], s[2]};
      const auto bit = [&](int period) { return turn % period == 0; };
      c.a = bit(3) ? DType::bf16 : DType::f32, c.b = bit(4) ? DType::bf16 : DType::f32, c.c = bit(5) ? DType::bf16 : DType::f32;
      c.a_transposed = form & 1, c.b_transposed = form & 2, c.accumulate = form > 3;
      c.epilogue = turn % 3 == 1;
      c.extra = turn % 5 == 1 ? 3 : 0;
      all.push_back(c);
    }
  return all;
}

/// What generated code is to a product: adds a bias to the tile, writes the result, and notes for each tile which call it belonged to.
struct Adding {
  Matrix* c = nullptr;
  std::vector<float> bias;
  static void run(const RegionCall* call, float* tile, int64_t stride, int64_t row, int64_t rows, int64_t col, int64_t cols) {
    const auto& self = *static_cast<const Adding*>(call->arguments[0]);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) self.c->set(row + i, col + j, tile[i * stride + j] + self.bias[static_cast<size_t>(col + j)]);
  }
};

struct Trial {
  Matrix a, b, c;
  Case form;
  Adding adding;
  void* arguments[1];
  std::vector<RegionCall> calls;

  explicit Trial(const Case& f)
      : a(f.m, f.k, f.a, f.a_transposed, f.extra), b(f.k, f.n, f.b, f.b_transposed, f.extra), c(f.m, f.n, f.c, false, f.extra), form(f) {
    a.fill(1), b.fill(2);
    if (f.accumulate) c.fill(3);
    for (int64_t j = 0; j < f.n; ++j) adding.bias.push_back(float(j % 13) / 8 - 0.7f);
  }
  Epilogue epilogue() { return epilogue_into(c, form.m); }
  Epilogue epilogue_into(Matrix& to, int64_t rows) {
    if (!form.epilogue) return {};
    adding.c = &to, arguments[0] = &adding;
    RegionCall call;
    call.arguments = arguments;
    calls.assign(static_cast<size_t>(rows + 1), call);
    Epilogue e;
    e.function = Adding::run, e.calls = calls.data(), e.rows_per_call = 1;
    return e;
  }
  void multiply(const MatmulKernels& kernels, ThreadPool& pool, Workspace& workspace) {
    matmul(a.operand(), b.operand(), kernels, c.result(form.accumulate), epilogue(), pool, workspace);
  }
};

class MatmulTest : public testing::TestWithParam<Variant> {
 protected:
  ThreadPool pool_{2};
  Workspace workspace_;
};

TEST_P(MatmulTest, MatchesF64) {
  const Variant& v = GetParam();
  for (const Case& form : cases()) {
    SCOPED_TRACE(testing::PrintToString(form));
    Trial run(form);
    const Matrix start = run.c;
    run.multiply(*v.kernels, pool_, workspace_);
    const std::vector<double> left = values(run.a, v.math, false), right = values(run.b, v.math, true);
    const double unit = std::ldexp(1.0, -24), store = form.c == DType::bf16 ? std::ldexp(1.0, -8) : 4 * unit;
    for (int64_t i = 0; i < form.m; ++i)
      for (int64_t j = 0; j < form.n; ++j) {
        double sum = form.accumulate ? start(i, j) : 0, size = std::abs(sum);
        for (int64_t k = 0; k < form.k; ++k) {
          const double product = left[size_t(i * form.k + k)] * right[size_t(j * form.k + k)];
          sum += product, size += std::abs(product);
        }
        const double bias = form.epilogue ? run.adding.bias[size_t(j)] : 0;
        sum += bias, size += std::abs(bias);
        // Rounding errors of a chain of k sums (Higham 2002, 3.1), the store.
        const double bound = double(form.k + 8) * unit * size;
        ASSERT_NEAR(run.c(i, j), sum, bound + store * std::abs(sum) + 1e-30) << i << ", " << j;
      }
    for (int64_t i = 0; i < form.m; ++i)
      for (int64_t j = form.n; j < run.c.stride; ++j) ASSERT_EQ(run.c.get(i * run.c.stride + j), Matrix::kGap) << "written between rows";
  }
}

TEST_P(MatmulTest, PackedAheadIsTheSame) {
  const Variant& v = GetParam();
  for (const Case& form : cases()) {
    SCOPED_TRACE(testing::PrintToString(form));
    Trial on_the_fly(form), ahead(form);
    on_the_fly.multiply(*v.kernels, pool_, workspace_);
    const PackedMatrix packed = pack(ahead.b.operand(), v.math, *v.kernels, pool_);
    EXPECT_EQ(packed.k(), form.k);
    EXPECT_EQ(packed.n(), form.n);
    matmul(ahead.a.operand(), packed, ahead.c.result(form.accumulate), ahead.epilogue(), pool_, workspace_);
    ASSERT_EQ(on_the_fly.c.bytes, ahead.c.bytes);
  }
}

TEST_P(MatmulTest, RepackFollowsTheWeights) {
  const Variant& v = GetParam();
  Trial run({.m = 9, .k = 300, .n = 70, .b_transposed = true}), fresh(run.form);
  PackedMatrix packed = pack(run.b.operand(), v.math, *v.kernels, pool_);
  run.b.fill(9), fresh.b.fill(9);
  repack(packed, run.b.operand(), pool_);
  matmul(run.a.operand(), packed, run.c.result(false), {}, pool_, workspace_);
  fresh.multiply(*v.kernels, pool_, workspace_);
  EXPECT_EQ(run.c.bytes, fresh.c.bytes);
  EXPECT_THROW(repack(packed, run.a.operand(), pool_), Error);
}

// Serving's promise: a row alone, in a batch and at another place of it gives the same bytes.
TEST_P(MatmulTest, ARowDependsOnItselfAlone) {
  const Variant& v = GetParam();
  for (const DType out : {DType::f32, DType::bf16})
    for (const auto& [k, n] : {std::pair<int64_t, int64_t>{384, 200}, {770, 65}, {17, 3}}) {
      Trial all({.m = 261, .k = k, .n = n, .c = out, .epilogue = true});
      const PackedMatrix packed = pack(all.b.operand(), v.math, *v.kernels, pool_);
      matmul(all.a.operand(), packed, all.c.result(false), all.epilogue(), pool_, workspace_);
      const size_t row_bytes = size_t(n) * size_of(out);
      for (const int64_t rows : {1, 2, 3, 4, 5, 6, 11, 16, 26, 40})
        for (const int64_t first : {0, 1, 5, 100, 221}) {
          Operand some = all.a.operand();
          some.data = static_cast<const float*>(some.data) + first * some.stride, some.rows = rows;
          Matrix c(rows, n, out, false, 0);
          matmul(some, packed, c.result(false), all.epilogue_into(c, rows), pool_, workspace_);
          const auto from = all.c.bytes.begin() + int64_t(size_t(first) * row_bytes);
          ASSERT_TRUE(std::equal(c.bytes.begin(), c.bytes.end(), from)) << rows << " rows from " << first << ", k " << k << ", n " << n;
        }
    }
}

// Training's promise: any number of threads gives the same bits.
TEST_P(MatmulTest, ThreadsDoNotChangeBits) {
  const Variant& v = GetParam();
  for (const Case& form : {Case{.m = 300, .k = 600, .n = 520}, Case{.m = 2, .k = 900, .n = 1500, .b_transposed = true},
                           Case{.m = 200, .k = 77, .n = 300, .a_transposed = true, .accumulate = true}}) {
    Trial one(form);
    ThreadPool single(1);
    Workspace fresh;
    one.multiply(*v.kernels, single, fresh);
    for (const int threads : {2, 3, 5}) {
      Trial many(form);
      ThreadPool pool(threads);
      many.multiply(*v.kernels, pool, workspace_);
      ASSERT_EQ(one.c.bytes, many.c.bytes) << threads << " threads";
    }
  }
}

/// What generated code is to the packing of a product: an operand that is nowhere whole.
struct Making {
  const Matrix* from = nullptr;  // [rows, width] of the call
  static void run(const RegionCall* call, float* tile, int64_t stride, int64_t row, int64_t rows, int64_t col, int64_t cols) {
    const Matrix& from = *static_cast<const Making*>(call->arguments[0])->from;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) {
        ASSERT_TRUE(row + i < from.rows && col + j < from.cols) << "outside the operand";
        tile[i * stride + j] = from(row + i, col + j);
      }
  }
};

// An operand made while it is packed gives the bits of one that was made before; also where it is packed in parts.
TEST_P(MatmulTest, MadeWhilePackedIsTheSame) {
  const Variant& v = GetParam();
  std::vector<Case> forms;
  for (const bool a_turned : {false, true})
    for (const bool b_turned : {false, true})
      for (const auto& [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>{70, 300, 50}, {1, 900, 17}, {26, 5, 300}, {200, 40, 33}})
        forms.push_back({.m = m, .k = k, .n = n, .a_transposed = a_turned, .b_transposed = b_turned, .accumulate = m == 26});
  forms.push_back({.m = 2200, .k = 8200, .n = 16, .a_transposed = true});  // beyond what is packed at a time
  forms.push_back({.m = 16, .k = 8200, .n = 2200});
  for (const Case& form : forms)
    for (const bool left : {false, true}) {
      if (form.k == 8200 && left != form.a_transposed) continue;
      SCOPED_TRACE(testing::PrintToString(form));
      Trial whole(form), made(form);
      whole.multiply(*v.kernels, pool_, workspace_);
      Operand a = made.a.operand(), b = made.b.operand();
      // The call sees [rows, width] as it lies in memory: turned where the operand is.
      Operand& operand = left ? a : b;
      Matrix lying = left ? made.a : made.b;
      if (operand.transposed) std::swap(lying.rows, lying.cols), lying.transposed = false;
      Making making{&lying};
      void* arguments[] = {&making};
      RegionCall call;
      call.arguments = arguments;
      const Prologue prologue{Making::run, &call};
      operand.data = nullptr, operand.dtype = DType::f32, operand.stride = 0, operand.made = &prologue;
      matmul(a, b, *v.kernels, made.c.result(form.accumulate), {}, pool_, workspace_);
      ASSERT_EQ(whole.c.bytes, made.c.bytes) << (left ? "left" : "right");
    }
}

// A start measures which blocks are fastest: its answer must not show in the results.
TEST_P(MatmulTest, BlocksDoNotChangeBits) {
  const Variant& v = GetParam();
  for (const Case& form :
       {Case{.m = 500, .k = 600, .n = 100}, Case{.m = 301, .k = 1100, .n = 70, .c = DType::bf16},
        Case{.m = 200, .k = 77, .n = 90, .a_transposed = true, .accumulate = true}, Case{.m = 26, .k = 800, .n = 33, .epilogue = true}}) {
    Trial computed(form);
    computed.multiply(*v.kernels, pool_, workspace_);
    for (const int64_t rows : {1, 7, 64, 200, 5000}) {
      Trial run(form);
      matmul(run.a.operand(), run.b.operand(), *v.kernels, run.c.result(form.accumulate), run.epilogue(), pool_, workspace_, {rows});
      ASSERT_EQ(run.c.bytes, computed.c.bytes) << testing::PrintToString(form) << " in blocks of " << rows << " rows";
    }
  }
}

// Rows of one call of an epilogue share sums of columns, so one thread must have all of them, also where the left operand is packed in
// parts.
TEST_P(MatmulTest, RowsOfOneCallBelongToOneThread) {
  const Variant& v = GetParam();
  struct Noting {
    int64_t rows_per_call;
    std::vector<std::atomic<std::thread::id>> threads;
    std::atomic<int64_t> rows = 0;
    std::atomic<bool> shared = false;
    static void run(const RegionCall* call, float*, int64_t, int64_t row, int64_t rows, int64_t, int64_t) {
      auto& self = *static_cast<Noting*>(call->arguments[0]);
      self.rows += rows;
      for (int64_t r = row; r < row + rows; ++r) {
        std::thread::id none{};
        const auto group = static_cast<size_t>(r / self.rows_per_call);
        if (!self.threads[group].compare_exchange_strong(none, std::this_thread::get_id()) && none != std::this_thread::get_id())
          self.shared = true;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));  // so that each thread gets some
    }
  };
  const int64_t per_call = kPanelsPerCall * v.kernels->rows, n = v.kernels->cols;
  for (const auto& [m, k] : {std::pair<int64_t, int64_t>{per_call * 5 + 1, 9}, {per_call * 3 + v.kernels->rows + 2, 300}, {2600, 8200}}) {
    Matrix a(m, k, DType::f32, false, 0), b(k, n, DType::f32, false, 0), c(m, n, DType::f32, false, 0);
    Noting noting{per_call, std::vector<std::atomic<std::thread::id>>(static_cast<size_t>(m / per_call + 1))};
    void* arguments[] = {&noting};
    RegionCall call;
    call.arguments = arguments;
    const std::vector<RegionCall> calls(noting.threads.size(), call);
    Epilogue e;
    e.function = Noting::run, e.calls = calls.data(), e.rows_per_call = per_call;
    ThreadPool pool(4);
    matmul(a.operand(), b.operand(), *v.kernels, c.result(false), e, pool, workspace_);
    EXPECT_EQ(noting.rows, m);
    EXPECT_FALSE(noting.shared) << m << " rows";
  }
}

TEST_P(MatmulTest, NanAndInfinityReachOnlyTheirRowAndColumn) {
  const Variant& v = GetParam();
  const float inf = std::numeric_limits<float>::infinity();
  Trial run({.m = 20, .k = 300, .n = 50});
  run.a.set(3, 299, NAN), run.a.set(7, 0, inf), run.b.set(10, 49, -inf), run.b.set(0, 5, 0);
  run.multiply(*v.kernels, pool_, workspace_);
  for (int64_t i = 0; i < 20; ++i)
    for (int64_t j = 0; j < 50; ++j) {
      const float x = run.c(i, j);
      const bool has_inf = i == 7 || j == 49;
      if (i == 7 && j == 49) continue;                    // +inf and -inf, or their difference
      const bool has_nan = i == 3 || (i == 7 && j == 5);  // inf * 0
      EXPECT_EQ(std::isnan(x), has_nan) << i << ", " << j;
      EXPECT_EQ(std::isinf(x), has_inf && !has_nan) << i << ", " << j;
    }
}

TEST_P(MatmulTest, DenormalsKeepTheirValueOrBecomeZero) {
  const Variant& v = GetParam();
  Trial run({.m = 4, .k = 8, .n = 4});
  const float tiny = std::ldexp(1.0f, -130);  // denormal, exact in bf16
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t k = 0; k < 8; ++k) run.a.set(i, k, tiny), run.b.set(k, i, 1.0f);
  run.multiply(*v.kernels, pool_, workspace_);
  const bool tiles = v.name.find("amx") != std::string::npos;  // tdpbf16ps takes denormals for zero
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(run.c(i, 0), tiles ? 0.0f : 8 * tiny);
}

TEST_P(MatmulTest, WrongOperandsAreRefused) {
  const Variant& v = GetParam();
  Trial run({.m = 4, .k = 8, .n = 6});
  const auto multiply = [&](const Operand& a, const Operand& b, const Result& c) { matmul(a, b, *v.kernels, c, {}, pool_, workspace_); };
  Operand a = run.a.operand(), b = run.b.operand();
  Result c = run.c.result(false);
  EXPECT_NO_THROW(multiply(a, b, c));
  a.cols = 7;
  EXPECT_THROW(multiply(a, b, c), Error);
  a = run.a.operand(), a.stride = 7;
  EXPECT_THROW(multiply(a, b, c), Error);
  a = run.a.operand(), a.dtype = DType::i32;
  EXPECT_THROW(multiply(a, b, c), Error);
  a = run.a.operand(), c.stride = 5;
  EXPECT_THROW(multiply(a, b, c), Error);
  c = run.c.result(false), c.dtype = DType::f16;
  EXPECT_THROW(multiply(a, b, c), Error);
  c = run.c.result(false), b.data = nullptr;
  EXPECT_THROW(multiply(a, b, c), Error);
}

INSTANTIATE_TEST_SUITE_P(Kernels, MatmulTest, testing::ValuesIn(variants()), [](const auto& parameter) { return parameter.param.name; });

// An element is one chain of FMAs whatever the width of the vectors, so f32 math gives the same bits on AVX2 and AVX-512.
TEST(MatmulF32, LanesDoNotChangeBits) {
  ThreadPool pool(2);
  Workspace workspace;
  Trial narrow({.m = 45, .k = 530, .n = 67, .epilogue = true}), wide(narrow.form);
  narrow.multiply(matmul_kernels(Isa::avx2, Math::f32), pool, workspace);
  wide.multiply(lanes16::f32_kernels(Math::f32), pool, workspace);
  EXPECT_EQ(narrow.c.bytes, wide.c.bytes);
}

TEST(MatmulAmx, SelfTestAgreesWithTheMachine) {
  const CpuInfo cpu = detect_cpu();
  EXPECT_EQ(amx_self_test(), cpu.amx_tile && cpu.amx_bf16);
}

}  // namespace
}  // namespace muster::cpu
