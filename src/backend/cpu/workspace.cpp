// Scratch memory: allocation in huge pages where the system gives them.
#include "backend/cpu/workspace.h"

#include <sys/mman.h>

#include <cstdlib>

#include "core/error.h"

namespace muster::cpu {

void Buffer::Free::operator()(std::byte* p) const { std::free(p); }

Buffer::Buffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  constexpr size_t kHuge = size_t{2} << 20, kLine = 64;
  const size_t alignment = bytes >= kHuge ? kHuge : kLine;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
  if (!data_) throw Error(ErrorKind::too_large, "[memory] no {} bytes for a kernel's buffer: use a smaller batch or model", bytes);
  if (alignment == kHuge) madvise(data_.get(), rounded, MADV_HUGEPAGE);  // advice: refused, it only runs slower
}

void Buffer::grow(size_t bytes) {
  if (bytes <= size_) return;
  *this = Buffer();  // first give back, so that both never stand side by side
  *this = Buffer(bytes);
}

std::byte* Workspace::shared(Slot slot, size_t bytes) {
  Buffer& buffer = shared_[static_cast<size_t>(slot)];
  buffer.grow(bytes);
  return buffer.data();
}

void Workspace::reserve_threads(int threads, size_t bytes) {
  if (threads_.size() < static_cast<size_t>(threads)) threads_.resize(static_cast<size_t>(threads));
  for (auto& b : threads_) b.grow(bytes);
}

}  // namespace muster::cpu
