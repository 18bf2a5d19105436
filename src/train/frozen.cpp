#include "train/frozen.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/error.h"

namespace muster::train {
namespace {
constexpr size_t kChunk = size_t{1} << 20;
}

FrozenTensors::FrozenTensors(const std::vector<Tensor>& tensors) : tensors_(tensors) {
  std::sort(tensors_.begin(), tensors_.end(), [](const Tensor& a, const Tensor& b) { return std::less<>()(a.data(), b.data()); });
  for (const Tensor& tensor : tensors_) count_ += (tensor.bytes() + kChunk - 1) / kChunk;
  chunks_ = std::make_unique<Chunk[]>(count_);
  Chunk* chunk = chunks_.get();
  for (const Tensor& tensor : tensors_)
    for (size_t begin = 0; begin < tensor.bytes(); begin += kChunk, ++chunk) {
      chunk->live = static_cast<const std::byte*>(tensor.data()) + begin;
      chunk->size = chunk->unread = std::min(kChunk, tensor.bytes() - begin);
    }
}

void FrozenTensors::read(std::span<const std::byte> bytes, const storage::TakeBytes& take) {
  while (!bytes.empty()) {
    Chunk* const end = chunks_.get() + count_;
    Chunk* chunk =
        std::upper_bound(chunks_.get(), end, bytes.data(), [](const std::byte* at, const Chunk& c) { return std::less<>()(at, c.live); });
    MUSTER_ASSERT(chunk != chunks_.get());
    --chunk;
    const auto offset = static_cast<size_t>(bytes.data() - chunk->live);
    MUSTER_ASSERT(offset < chunk->size);
    const size_t n = std::min(bytes.size(), chunk->size - offset);
    const std::lock_guard lock(chunk->mutex);
    MUSTER_ASSERT(n <= chunk->unread);
    take({(chunk->copy ? chunk->copy.get() : chunk->live) + offset, n});
    chunk->unread -= n;
    if (chunk->unread == 0) chunk->copy.reset();
    bytes = bytes.subspan(n);
  }
}

size_t FrozenTensors::release(ThreadPool& threads) {
  if (released_) return 0;
  released_ = true;
  std::atomic<size_t> copied{0};
  // From the end: the reader comes from the front and frees the most of what need not be copied.
  threads.parallel_for(static_cast<int64_t>(count_), [&](int64_t c) {
    Chunk& chunk = chunks_[count_ - 1 - static_cast<size_t>(c)];
    const std::lock_guard lock(chunk.mutex);
    if (chunk.unread == 0) return;
    chunk.copy.reset(new std::byte[chunk.size]);
    std::memcpy(chunk.copy.get(), chunk.live, chunk.size);
    copied += chunk.size;
  });
  return copied;
}

}  // namespace muster::train
