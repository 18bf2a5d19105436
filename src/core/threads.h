// The one pool of worker threads, handed to whoever computes. Work is cut into chunks whose borders do not depend on the number of
// threads, so results do not either.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

namespace muster {

class ThreadPool {
 public:
  /// `threads` counts the caller: 1 starts no worker. Throws Error(io) when the system gives no more threads.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const;

  /// Calls body(chunk) once for each chunk in [0, chunks), on the caller and the workers; returns when all are done.
  /// Chunks are handed out dynamically; the body must not depend on which thread runs it. The first exception is rethrown here.
  /// One loop runs at a time: a second caller waits; a call from inside a body runs serially.
  void parallel_for(int64_t chunks, const std::function<void(int64_t)>& body);

  /// Same, with the index of the thread (0 = caller) for per-thread scratch.
  void parallel_for(int64_t chunks, const std::function<void(int64_t chunk, int thread)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster
