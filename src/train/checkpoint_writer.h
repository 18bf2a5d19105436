// Checkpoints written while training goes on: one thread of low priority writes what the last step left, the next step computes.
// Only when the weights are about to change is what is not written yet copied (frozen.h).
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>

#include "core/threads.h"
#include "train/checkpoint.h"
#include "train/frozen.h"

namespace muster::train {

class CheckpointWriter {
 public:
  explicit CheckpointWriter(ThreadPool& threads) : threads_(threads) {}
  /// Waits until what was begun is written, whatever comes of it.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Begins to write a checkpoint and, when it is whole, to delete old ones (limit 0: none). Waits for the one before. What the snapshot
  /// refers to lives until wait(); its tensors may change after release(). Throws like wait().
  void start(Snapshot snapshot, int64_t save_total_limit);

  /// Before weights or moments change.
  void release();
  /// Until the checkpoint that was begun is on disk. Throws what went wrong with it: Error(io).
  void wait();
  /// wait(), when that takes no time.
  void check();

  /// Seconds that steps waited in start() and release(): for the checkpoint before, or for copies.
  [[nodiscard]] double stalled() const { return stalled_; }
  [[nodiscard]] int64_t written() const { return written_; }

 private:
  void join();
  ThreadPool& threads_;
  std::unique_ptr<FrozenTensors> frozen_;
  std::thread thread_;
  std::atomic<bool> done_{true};
  std::exception_ptr failure_;
  double stalled_ = 0;
  int64_t written_ = 0;
};

}  // namespace muster::train
