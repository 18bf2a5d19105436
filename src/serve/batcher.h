// Many requests, one engine: a bounded queue and one thread that packs what waits into batches by a token budget and runs them.
// Token ids in, logits out. No text, no JSON, no model here: the run function is injected.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "net/http.h"
#include "text/token_batch.h"

namespace muster::serve {

using Clock = std::chrono::steady_clock;

struct BatcherOptions {
  int64_t max_batch_tokens = 16384;
  int64_t max_batch_requests = 512;       // texts of one batch
  int64_t max_concurrent_requests = 512;  // texts waiting or running; more is Error(overloaded)
};

/// Why an item has no logits.
struct Failure {
  ErrorKind kind;
  std::string message;
};

/// What became of one text.
struct ItemResult {
  std::vector<float> logits;
  std::optional<Failure> failure;
  std::chrono::nanoseconds queue{};      // from submit to the start of its batch
  std::chrono::nanoseconds inference{};  // of the whole batch it ran in
  int64_t tokens = 0;
};

/// One request: texts as token ids, answered together and in order.
struct Job {
  std::vector<std::vector<int32_t>> texts = {};
  net::CancelFlag cancelled = {};                                  // may be empty; checked before each batch
  Clock::time_point deadline = Clock::time_point::max();           // a text whose batch has not begun by then fails with timeout
  std::function<void(std::vector<ItemResult> results)> done = {};  // called once, on the batcher's thread; must not throw or wait
};

/// What the batcher tells about each batch it ran, for metrics.
struct BatchReport {
  int64_t sequences = 0, tokens = 0;
  std::chrono::nanoseconds inference{};
  bool failed = false;
};

/// Texts run in the order they came. A batch is all that waits and fits, and starts as soon as the engine is free: no timer, so a lone
/// request never waits, and under load batches grow by themselves. When a batch fails, its requests are run again one by one, so one
/// that breaks the engine fails alone.
/// Source: text-embeddings-inference, core/src/queue.rs, and its unpadded cost.
class Batcher {
 public:
  /// Logits [B, labels] row-major of B packed sequences; called on the batcher's thread only.
  using RunFunction = std::function<std::vector<float>(const text::TokenBatch&)>;
  struct Hooks {
    std::function<Clock::time_point()> now = [] { return Clock::now(); };
    std::function<void(const BatchReport&)> on_batch = {};
  };

  Batcher(BatcherOptions options, int64_t labels, RunFunction run, Hooks hooks);
  Batcher(BatcherOptions options, int64_t labels, RunFunction run) : Batcher(options, labels, std::move(run), Hooks{}) {}
  ~Batcher();  // stop()
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  /// Queues all texts of the job or none. From any thread; never waits.
  /// Throws, and then never calls `done`: Error(overloaded) when the queue has no room (see retry_after), Error(too_large) for a text over
  /// max_batch_tokens or more texts than the queue can hold, Error(invalid_argument) for no texts or an empty one, Error(cancelled) after
  /// stop().
  void submit(Job job);

  /// Texts waiting or running, and the tokens of those that wait.
  [[nodiscard]] int64_t pending_texts() const;
  [[nodiscard]] int64_t queued_tokens() const;

  /// How long until what waits now is done, by the speed of the last batches: whole seconds, 1 to 30.
  [[nodiscard]] std::chrono::seconds retry_after() const;

  /// Refuses new jobs, finishes the queued ones, ends the thread.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::serve
