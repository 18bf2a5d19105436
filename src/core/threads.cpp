#include "core/threads.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace muster {
namespace {
thread_local int t_thread = -1;  // index inside the running loop, -1 outside any
constexpr int kSpins = 4000;  // about 50-100 us before a worker sleeps: steps of a program follow each other faster than that
}  // namespace

struct ThreadPool::State {
  std::mutex one_loop;  // held by the caller of the running loop
  std::mutex mutex;
  std::condition_variable wake, done;
  std::atomic<uint64_t> generation{0};
  std::atomic<int64_t> next{0};
  std::atomic<int> running{0};
  std::atomic<bool> stop{false};
  int64_t chunks = 0;
  const std::function<void(int64_t, int)>* body = nullptr;
  std::exception_ptr error;
  std::vector<std::thread> workers;

  void work(int thread) {
    t_thread = thread;
    try {
      for (int64_t c; (c = next.fetch_add(1)) < chunks;) (*body)(c, thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next = chunks;
    }
    t_thread = -1;
  }

  void worker(int thread) {
    for (uint64_t seen = 0;;) {
      for (int i = 0; i < kSpins && generation.load(std::memory_order_acquire) == seen && !stop; ++i) _mm_pause();
      if (generation.load(std::memory_order_acquire) == seen) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return generation.load() != seen || stop; });
      }
      if (stop) return;
      seen = generation.load(std::memory_order_acquire);
      work(thread);
      if (running.fetch_sub(1) == 1) {
        const std::lock_guard lock(mutex);
        done.notify_one();
      }
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  for (int i = 1; i < std::max(1, threads); ++i) state_->workers.emplace_back([s = state_.get(), i] { s->worker(i); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (auto& w : state_->workers) w.join();
}

int ThreadPool::threads() const { return static_cast<int>(state_->workers.size()) + 1; }

void ThreadPool::parallel_for(int64_t chunks, const std::function<void(int64_t)>& body) {
  parallel_for(chunks, [&body](int64_t chunk, int) { body(chunk); });
}

void ThreadPool::parallel_for(int64_t chunks, const std::function<void(int64_t, int)>& body) {
  State& s = *state_;
  if (chunks <= 0) return;
  if (chunks == 1 || s.workers.empty() || t_thread >= 0) {
    for (int64_t c = 0; c < chunks; ++c) body(c, std::max(0, t_thread));
    return;
  }
  const std::lock_guard one(s.one_loop);
  {
    const std::lock_guard lock(s.mutex);
    s.chunks = chunks, s.body = &body, s.error = nullptr;
    s.next = 0;
    s.running = static_cast<int>(s.workers.size());
    s.generation.fetch_add(1, std::memory_order_release);
  }
  s.wake.notify_all();
  s.work(0);
  for (int i = 0; i < kSpins && s.running.load(std::memory_order_acquire) != 0; ++i) _mm_pause();
  std::unique_lock lock(s.mutex);
  s.done.wait(lock, [&] { return s.running.load() == 0; });
  if (s.error) std::rethrow_exception(s.error);
}

}  // namespace muster
