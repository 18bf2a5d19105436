// Counters and histograms of one server, and their Prometheus text. Plain members, no registry.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace muster::serve {

/// Counts of values at most each bound, their sum and number. Thread-safe.
template <size_t kBuckets>
class Histogram {
 public:
  constexpr explicit Histogram(const std::array<double, kBuckets>& bounds) : bounds_(bounds) {}
  void add(double value) {
    size_t i = 0;
    while (i < kBuckets && value > bounds_[i]) ++i;
    counts_[i].fetch_add(1, std::memory_order_relaxed);
    double sum = sum_.load(std::memory_order_relaxed);
    while (!sum_.compare_exchange_weak(sum, sum + value, std::memory_order_relaxed)) {
    }
  }
  /// Appends the _bucket, _sum and _count lines. `labels` is "" or like `stage="queue"`.
  void write(std::string& out, std::string_view name, std::string_view labels) const;

 private:
  std::array<double, kBuckets> bounds_;
  std::array<std::atomic<uint64_t>, kBuckets + 1> counts_{};
  std::atomic<double> sum_{0};
};

/// Seconds, 0.1 ms to 60 s.
inline constexpr std::array<double, 16> kSecondBounds{.0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 5, 20, 60};
/// Texts or tokens, powers of two.
inline constexpr std::array<double, 16> kSizeBounds{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};

struct Metrics {
  Histogram<16> request_seconds{kSecondBounds}, tokenize_seconds{kSecondBounds}, queue_seconds{kSecondBounds},
      inference_seconds{kSecondBounds};
  Histogram<16> text_tokens{kSizeBounds}, batch_texts{kSizeBounds}, batch_tokens{kSizeBounds};
  std::atomic<uint64_t> batches_failed{0}, texts_truncated{0};

  /// One answered request; `route` comes from the table of routes, never from the client.
  void count(std::string_view route, int status);

  struct Gauges {
    int64_t pending_texts = 0, queued_tokens = 0, connections = 0;
    bool ready = false;
  };
  /// The Prometheus text format, version 0.0.4. Resident memory is read from the operating system.
  [[nodiscard]] std::string text(const Gauges& gauges) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;
};

}  // namespace muster::serve
