// Scratch memory of the kernels: grown while a program warms up, reused by every later call, so the hot path allocates nothing.
// One workspace belongs to one running program; what a kernel leaves in it means nothing to the next one.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

namespace muster::cpu {

/// Uninitialised memory aligned to 64 bytes; from 2 MiB up aligned to huge pages and asked to be made of them.
class Buffer {
 public:
  Buffer() = default;
  /// Throws Error(resource) when the system has no such memory to give.
  explicit Buffer(size_t bytes);
  [[nodiscard]] std::byte* data() const { return data_.get(); }
  [[nodiscard]] size_t size() const { return size_; }
  /// At least `bytes` afterwards; the contents are lost when it grows.
  void grow(size_t bytes);

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

class Workspace {
 public:
  enum class Slot { left, right };
  /// Shared by the threads of one kernel.
  std::byte* shared(Slot slot, size_t bytes);
  /// Makes room for `bytes` of each of `threads` threads; then of_thread(0 .. threads - 1) may be called from the loop's body.
  void reserve_threads(int threads, size_t bytes);
  [[nodiscard]] std::byte* of_thread(int thread) const { return threads_[static_cast<size_t>(thread)].data(); }

 private:
  Buffer shared_[2];
  std::vector<Buffer> threads_;
};

}  // namespace muster::cpu
