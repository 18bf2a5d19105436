// Tensors as they are at one moment, though training goes on: they are read where they are for as long as they do not change, and what
// was not read by then is copied. Who reads is checkpoint_writer.h.
#pragma once
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "core/threads.h"
#include "storage/safetensors.h"

namespace muster::train {

class FrozenTensors {
 public:
  /// Every byte of the tensors is to be read once.
  explicit FrozenTensors(const std::vector<Tensor>& tensors);

  /// Hands the bytes of a piece of the tensors to `take`, in pieces, as they were at construction. One thread; another may release().
  void read(std::span<const std::byte> bytes, const storage::TakeBytes& take);

  /// Copies all that was not read yet: afterwards the tensors may change. Returns the bytes copied.
  size_t release(ThreadPool& threads);

 private:
  struct Chunk {
    const std::byte* live = nullptr;
    size_t size = 0, unread = 0;
    std::unique_ptr<std::byte[]> copy;  // in place of `live` after release()
    std::mutex mutex;
  };
  std::vector<Tensor> tensors_;  // kept alive
  std::unique_ptr<Chunk[]> chunks_;
  size_t count_ = 0;  // sorted by address
  bool released_ = false;
};

}  // namespace muster::train
