#include "serve/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

namespace muster::serve {
namespace {
int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void describe(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}
template <typename T>
void single(std::string& out, std::string_view name, std::string_view type, std::string_view help, T value) {
  describe(out, name, type, help);
  out += fmt::format("{} {}\n", name, value);
}
}  // namespace

template <size_t kBuckets>
void Histogram<kBuckets>::write(std::string& out, std::string_view name, std::string_view labels) const {
  const std::string_view comma = labels.empty() ? "" : ",";
  uint64_t below = 0;
  for (size_t i = 0; i <= kBuckets; ++i) {
    below += counts_[i].load(std::memory_order_relaxed);
    const std::string bound = i < kBuckets ? fmt::format("{}", bounds_[i]) : "+Inf";
    out += fmt::format("{}_bucket{{{}{}le=\"{}\"}} {}\n", name, labels, comma, bound, below);
  }
  const std::string braces = labels.empty() ? "" : fmt::format("{{{}}}", labels);
  out += fmt::format("{}_sum{} {}\n{}_count{} {}\n", name, braces, sum_.load(std::memory_order_relaxed), name, braces, below);
}
template class Histogram<16>;

void Metrics::count(std::string_view route, int status) {
  const std::lock_guard lock(mutex_);
  ++requests_[{std::string(route), status}];
}

std::string Metrics::text(const Gauges& gauges) const {
  std::string out;
  describe(out, "muster_requests_total", "counter", "Answered requests.");
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, count] : requests_)
      out += fmt::format("muster_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", key.first, key.second, count);
  }
  describe(out, "muster_request_duration_seconds", "histogram", "Invocations, from the whole request read to the answer ready.");
  request_seconds.write(out, "muster_request_duration_seconds", "");
  describe(out, "muster_stage_duration_seconds", "histogram",
           "Where the time of a successful invocation goes: tokenize, queue, inference.");
  tokenize_seconds.write(out, "muster_stage_duration_seconds", "stage=\"tokenize\"");
  queue_seconds.write(out, "muster_stage_duration_seconds", "stage=\"queue\"");
  inference_seconds.write(out, "muster_stage_duration_seconds", "stage=\"inference\"");
  describe(out, "muster_text_tokens", "histogram", "Tokens of a text after truncation.");
  text_tokens.write(out, "muster_text_tokens", "");
  describe(out, "muster_batch_texts", "histogram", "Texts of a batch.");
  batch_texts.write(out, "muster_batch_texts", "");
  describe(out, "muster_batch_tokens", "histogram", "Tokens of a batch.");
  batch_tokens.write(out, "muster_batch_tokens", "");
  single(out, "muster_batches_failed_total", "counter", "Batches the model failed on.", batches_failed.load());
  single(out, "muster_texts_truncated_total", "counter", "Texts cut to the limit of tokens.", texts_truncated.load());
  single(out, "muster_pending_texts", "gauge", "Texts waiting or running.", gauges.pending_texts);
  single(out, "muster_queued_tokens", "gauge", "Tokens of the texts that wait.", gauges.queued_tokens);
  single(out, "muster_connections", "gauge", "Open client connections.", gauges.connections);
  single(out, "muster_ready", "gauge", "1 when /ping is 200.", gauges.ready ? 1 : 0);
  single(out, "process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes());
  return out;
}

}  // namespace muster::serve
