#include "runtime/profile.h"

#include <algorithm>
#include <map>

#include "backend/cpu/kernels.h"
#include "storage/file.h"

namespace muster::runtime {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A JSON string; names of steps have no control characters.
std::string quoted(const std::string& s) {
  std::string text = "\"";
  for (const char c : s) text += (c == '"' || c == '\\' ? std::string("\\") : std::string()) + c;
  return text + "\"";
}

}  // namespace

Peaks measure_peaks(Isa isa, ThreadPool& threads) {
  const cpu::Kernels& kernels = cpu::kernels(isa);
  cpu::Workspace workspace;
  const cpu::KernelContext context{threads, workspace};
  Peaks peaks;
  constexpr int64_t kTurns = 1 << 18;
  for (int i = 0; i < 6; ++i) {
    const auto start = Clock::now();
    threads.parallel_for(threads.threads(), [&](int64_t) { (void)kernels.fma_probe(kTurns); });
    const double flops = static_cast<double>(kTurns * kernels.fma_probe_flops * threads.threads());
    peaks.gflops = std::max(peaks.gflops, flops / seconds_since(start) / 1e9);
  }
  constexpr int64_t kElements = int64_t{24} << 20;  // 96 MB: beyond the caches
  std::vector<float> array(static_cast<size_t>(kElements), 1.0f);
  for (int i = 0; i < 4; ++i) {
    const auto start = Clock::now();
    kernels.scale(context, DType::f32, array.data(), 1.0f, array.data(), kElements);
    peaks.gigabytes_per_second = std::max(peaks.gigabytes_per_second, 8.0 * static_cast<double>(kElements) / seconds_since(start) / 1e9);
  }
  return peaks;
}

double ProfileRow::of_limit(const Peaks& peaks) const {
  if (milliseconds <= 0) return 0;
  return std::max(cost.flops / (peaks.gflops * 1e6), cost.bytes / (peaks.gigabytes_per_second * 1e6)) / milliseconds;
}

std::vector<ProfileRow> profile(const graph::Graph& graph, const graph::SymbolValues& symbols,
                                const std::vector<std::vector<backend::StepTime>>& runs) {
  std::map<std::string, ProfileRow> rows;
  std::map<std::string, std::vector<double>> times;  // of each run
  for (const auto& run : runs) {
    std::map<std::string, double> total;
    for (const backend::StepTime& step : run) {
      const graph::Node& node = graph.nodes[static_cast<size_t>(step.node)];
      const std::string what = describe(node), types = to_string(node.types[0]);
      total[what + types] += std::chrono::duration<double, std::milli>(step.end - step.begin).count();
      ProfileRow& row = rows[what + types];
      if (&run != &runs.front()) continue;
      row.step = what, row.types = types;
      ++row.count;
      const graph::Cost cost = cost_of(graph, step.node, symbols);
      row.cost.flops += cost.flops, row.cost.bytes += cost.bytes;
    }
    for (const auto& [key, ms] : total) times[key].push_back(ms);
  }
  std::vector<ProfileRow> sorted;
  for (auto& [key, row] : rows) {
    std::vector<double>& t = times.at(key);
    std::nth_element(t.begin(), t.begin() + static_cast<std::ptrdiff_t>(t.size() / 2), t.end());
    row.milliseconds = t[t.size() / 2];
    sorted.push_back(std::move(row));
  }
  std::sort(sorted.begin(), sorted.end(), [](const ProfileRow& a, const ProfileRow& b) { return a.milliseconds > b.milliseconds; });
  return sorted;
}

void Trace::span(const std::string& name, const std::string& track, Clock::time_point begin, Clock::time_point end) {
  const auto us = [](auto d) { return std::chrono::duration<double, std::micro>(d).count(); };
  spans_.push_back({name, track, us(begin - start_), us(end - begin)});
}

void Trace::steps(const graph::Graph& graph, const std::vector<backend::StepTime>& run, const std::string& track) {
  for (const backend::StepTime& step : run) span(describe(graph.nodes[static_cast<size_t>(step.node)]), track, step.begin, step.end);
}

void Trace::write(const std::string& path) const {
  std::map<std::string, size_t> tracks;
  for (const Span& s : spans_) tracks.try_emplace(s.track, tracks.size() + 1);
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  std::string_view comma;
  for (const auto& [track, tid] : tracks) {
    text +=
        fmt::format("{}{{\"ph\":\"M\",\"pid\":1,\"tid\":{},\"name\":\"thread_name\",\"args\":{{\"name\":{}}}}}", comma, tid, quoted(track));
    comma = ",\n";
  }
  for (const Span& s : spans_) {
    text += fmt::format("{}{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"name\":{}}}", comma, tracks.at(s.track),
                        s.begin_us, s.us, quoted(s.name));
    comma = ",\n";
  }
  storage::write_file_atomic(path, text + "\n]}\n", "trace");
}

}  // namespace muster::runtime
