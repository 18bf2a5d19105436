// Our matmul against oneDNN's, call by call in turns in one process, so that a busy or throttled machine slows both alike.
// Prints GFLOP/s (the best of the calls), the share of an FMA peak measured in the same run, and the ratio.
#include <fmt/format.h>
#include <omp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "backend/cpu/matmul.h"

namespace {

using namespace muster;
using namespace muster::cpu;

/// Seconds: of the wall, or of this process's CPU time where --cpu-time says that others use the machine too.
double now(bool cpu_time) {
  timespec t{};
  clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Twelve independent chains of FMAs: what one core can do at most. Returns flops per iteration.
template <typename Vec>
inline __attribute__((always_inline)) double fma_chains(int64_t iterations, float* sink) {
  Vec a = Vec{} + 0.999f, b = Vec{} + 0.001f, x0 = b, x1 = b, x2 = b, x3 = b, x4 = b, x5 = b, x6 = b, x7 = b, x8 = b, x9 = b, x10 = b,
      x11 = b;
  const auto step = [&](Vec& x) { __asm__ volatile("vfmadd213ps %2, %1, %0" : "+v"(x) : "v"(a), "v"(b)); };
  for (int64_t i = 0; i < iterations; ++i)
    step(x0), step(x1), step(x2), step(x3), step(x4), step(x5), step(x6), step(x7), step(x8), step(x9), step(x10), step(x11);
  *sink += (x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11)[0];
  return 12.0 * 2 * sizeof(Vec) / sizeof(float);
}
using Vec8 = float __attribute__((vector_size(32)));
using Vec16 = float __attribute__((vector_size(64)));
__attribute__((noinline)) double chains8(int64_t n, float* sink) { return fma_chains<Vec8>(n, sink); }
__attribute__((noinline, target("avx512f"))) double chains16(int64_t n, float* sink) { return fma_chains<Vec16>(n, sink); }

double measure_peak(Isa isa, bool cpu_time) {
  double best = 0;
  float sink = 0;
  for (int r = 0; r < 20; ++r) {
    constexpr int64_t kIterations = 200'000;
    const double start = now(cpu_time), flops = isa == Isa::avx2 ? chains8(kIterations, &sink) : chains16(kIterations, &sink);
    best = std::max(best, flops * kIterations / (now(cpu_time) - start) / 1e9);
  }
  return best;
}

struct Shape {
  std::string use;  // forward: x W^T with packed weights; dW: dY^T X into f32, accumulated
  int64_t m, k, n;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  const auto forward = [&](int64_t m, int64_t k, int64_t n) { all.push_back({"forward", m, k, n}); };
  forward(1024, 768, 768), forward(1024, 768, 3072), forward(1024, 3072, 768), forward(4096, 768, 3072), forward(768, 1024, 3072);
  forward(256, 384, 1536), forward(64, 768, 3072);
  for (const int64_t m : {1, 16, 26}) forward(m, 768, 768), forward(m, 768, 3072), forward(m, 3072, 768);
  for (const int64_t m : {26, 813}) forward(m, 384, 384), forward(m, 384, 1152), forward(m, 384, 1536), forward(m, 1536, 384);
  forward(100, 768, 30522);
  for (const auto& [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>{768, 813, 768}, {3072, 813, 768}, {768, 813, 3072}, {1536, 813, 384}})
    all.push_back({"dW", m, k, n});
  return all;
}

/// One product in both implementations over the same data.
class Contest {
 public:
  Contest(const Shape& shape, Math math, Isa isa, int threads)
      : s_(shape), math_(math), isa_(isa), pool_(threads), a_(size(s_.m * s_.k)), b_(size(s_.k * s_.n)), c_(size(s_.m * s_.n)) {
    for (size_t i = 0; i < a_.size(); ++i) a_[i] = float(i % 17) / 16 - 0.5f;
    for (size_t i = 0; i < b_.size(); ++i) b_[i] = float(i % 19) / 16 - 0.5f;
    if (forward()) packed_ = pack(right(), math, isa, pool_);
    prepare_rival();
  }
  Contest(const Contest&) = delete;
  Contest& operator=(const Contest&) = delete;

  void ours() {
    const Result c{c_.data(), DType::f32, s_.n, !forward()};
    if (forward())
      matmul({a_.data(), DType::f32, s_.m, s_.k, s_.k, false}, packed_, c, {}, pool_, workspace_);
    else
      matmul({a_.data(), DType::f32, s_.m, s_.k, s_.m, true}, right(), math_, isa_, c, {}, pool_, workspace_);
  }
  void rival() { primitive_.execute(stream_, arguments_), stream_.wait(); }
  [[nodiscard]] double flops() const { return 2.0 * double(s_.m) * double(s_.k) * double(s_.n); }

 private:
  static size_t size(int64_t n) { return static_cast<size_t>(n); }
  [[nodiscard]] bool forward() const { return s_.use == "forward"; }
  [[nodiscard]] Operand right() const {  // the weights as a model holds them, [n, k]; or X, [k, n]
    return forward() ? Operand{b_.data(), DType::f32, s_.k, s_.n, s_.k, true} : Operand{b_.data(), DType::f32, s_.k, s_.n, s_.n, false};
  }

  void prepare_rival() {
    using dnnl::memory;
    const auto type = math_ == Math::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
    using Tag = memory::format_tag;
    const memory::desc a({s_.m, s_.k}, type, forward() ? Tag::ab : Tag::ba), any({s_.k, s_.n}, type, forward() ? Tag::any : Tag::ab);
    const memory::desc c({s_.m, s_.n}, memory::data_type::f32, Tag::ab);
    dnnl::primitive_attr attributes;
    if (!forward()) {
      dnnl::post_ops add;
      add.append_sum(1.0f);
      attributes.set_post_ops(add);
    }
    const dnnl::matmul::primitive_desc chosen({a, any, c}, attributes, engine_);
    primitive_ = dnnl::matmul(chosen);
    memory from_a({{s_.m, s_.k}, memory::data_type::f32, forward() ? Tag::ab : Tag::ba}, engine_, a_.data());
    memory from_b({{s_.k, s_.n}, memory::data_type::f32, forward() ? Tag::ba : Tag::ab}, engine_, b_.data());
    memory to_a(a, engine_), to_b(chosen.weights_desc(), engine_), to_c(c, engine_);
    dnnl::reorder(from_a, to_a).execute(stream_, from_a, to_a);
    dnnl::reorder(from_b, to_b).execute(stream_, from_b, to_b);
    std::fill_n(static_cast<float*>(to_c.get_data_handle()), s_.m * s_.n, 0.0f);
    stream_.wait();
    arguments_ = {{DNNL_ARG_SRC, to_a}, {DNNL_ARG_WEIGHTS, to_b}, {DNNL_ARG_DST, to_c}};
  }

  Shape s_;
  Math math_;
  Isa isa_;
  ThreadPool pool_;
  Workspace workspace_;
  std::vector<float> a_, b_, c_;
  PackedMatrix packed_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::matmul primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Our matmul against oneDNN's, in turns");
  bool json = false, bf16 = false, cpu_time = false;
  double seconds = 0.4;
  std::vector<int> threads{1, 2};
  std::string only;
  app.add_flag("--json", json, "one JSON line a shape");
  app.add_flag("--bf16", bf16, "bf16 math (f32 in memory for us, bf16 for oneDNN)");
  app.add_option("--seconds", seconds, "time for one shape and number of threads")->capture_default_str();
  app.add_option("--threads", threads, "numbers of threads")->delimiter(',')->capture_default_str();
  app.add_option("--only", only, "only the shapes whose name holds this, as in 'forward 1024x768'");
  app.add_flag("--cpu-time", cpu_time, "count CPU time, not the wall's: for a shared machine; true for one thread only");
  CLI11_PARSE(app, argc, argv);

  const Isa isa = resolve_isa(detect_cpu());
  const double peak = measure_peak(isa, cpu_time);
  if (!json)
    fmt::print("{}: f32 FMA peak of a core {:.1f} GF/s\n{:<26} threads    ours  % peak  oneDNN  % peak  ratio\n", name_of(isa), peak,
               "shape");
  for (const Shape& shape : shapes()) {
    const std::string name = fmt::format("{} {}x{}x{}", shape.use, shape.m, shape.k, shape.n);
    if (name.find(only) == std::string::npos) continue;
    for (const int t : threads) {
      omp_set_num_threads(t);
      Contest contest(shape, bf16 ? Math::bf16 : Math::f32, isa, t);
      // Turns of a few calls after a pause: the threads of the one that had the turn before spin on for a while.
      double ours = 1e9, rival = 1e9;
      const auto turn = [cpu_time](double& best, const auto& call) {
        std::this_thread::sleep_for(std::chrono::milliseconds(4));
        for (int i = 0; i < 4; ++i) {
          const double start = now(cpu_time);
          call();
          best = std::min(best, now(cpu_time) - start);
        }
      };
      const double end = now(false) + seconds;
      for (int turns = 0; turns < 2 || now(false) < end; ++turns) {
        turn(ours, [&] { contest.ours(); });
        turn(rival, [&] { contest.rival(); });
      }
      const double gf = contest.flops() / 1e9, a = gf / ours, b = gf / rival;
      if (json)
        fmt::print("{}\n", nlohmann::json{{"shape", name},
                                          {"isa", name_of(isa)},
                                          {"threads", t},
                                          {"peak_gflops", peak},
                                          {"ours_gflops", a},
                                          {"onednn_gflops", b},
                                          {"ratio", a / b}}
                               .dump());
      else
        fmt::print("{:<26} {:>7} {:>7.1f} {:>6.0f}% {:>7.1f} {:>6.0f}% {:>6.2f}\n", name, t, a, 100 * a / (peak * t), b,
                   100 * b / (peak * t), a / b);
    }
  }
}
