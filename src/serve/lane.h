// One thread for work too long for an I/O thread: tokenizing megabytes must not keep /ping waiting.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace muster::serve {

class Lane {
 public:
  Lane();
  ~Lane();  // stop()
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// Runs `task` after those posted before it; it must not throw. Its callers bound how many wait: one a connection.
  /// After stop() the task is dropped.
  void post(std::function<void()> task);

  /// Finishes what is queued and ends the thread.
  void stop();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace muster::serve
