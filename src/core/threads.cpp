#include "core/threads.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.h"

namespace muster {
namespace {
thread_local int t_thread = -1;  // index inside the running loop, -1 outside any
constexpr int kSpins = 4000;     // about 50-100 us before a worker sleeps: steps of a program follow each other faster than that
}  // namespace

struct ThreadPool::State {
  std::mutex one_loop;  // held by the caller of the running loop
  std::mutex mutex;
  std::condition_variable wake, done;
  std::atomic<uint64_t> generation{0};  // counts loops: what workers wait for
  std::atomic<bool> open{false};        // a loop runs and may be joined
  std::atomic<int> active{0};           // workers inside it; one that wakes late finds it closed and is waited for by nobody
  std::atomic<int64_t> next{0};
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
      for (int i = 0; i < kSpins && generation == seen && !stop; ++i) _mm_pause();
      if (generation == seen) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return generation != seen || stop; });
      }
      if (stop) return;
      seen = generation;
      ++active;  // before looking at `open`; the caller closes before it looks at `active`
      if (open) work(thread);
      if (--active == 0) {
        const std::lock_guard lock(mutex);
        done.notify_one();
      }
    }
  }

  void end() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    for (auto& w : workers) w.join();
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  try {
    for (int i = 1; i < std::max(1, threads); ++i) state_->workers.emplace_back([s = state_.get(), i] { s->worker(i); });
  } catch (const std::system_error& e) {  // no memory for a stack, or too many processes
    state_->end();
    throw Error(ErrorKind::io, "cannot start {} threads: {}; give fewer (--threads)", threads, e.code().message());
  }
}

ThreadPool::~ThreadPool() { state_->end(); }

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
    s.open = true;
    ++s.generation;
  }
  s.wake.notify_all();
  s.work(0);
  s.open = false;
  for (int i = 0; i < kSpins && s.active != 0; ++i) _mm_pause();
  {
    std::unique_lock lock(s.mutex);
    s.done.wait(lock, [&] { return s.active == 0; });
  }
  if (s.error) std::rethrow_exception(s.error);
}

}  // namespace muster
