// Scratch memory of kernels: grows to the largest request and stays, so steps after the first allocate nothing.
// Also what kernels compiled for wider instruction sets call in base code, so that they hold no inline code others could link to.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/threads.h"

namespace muster::cpu {

/// One reusable block. Belongs to one caller at a time; a kernel's scratch is dead when the kernel returns.
class Workspace {
 public:
  /// At least `bytes`, aligned to 64, contents undefined; the block of the call before is dead.
  void* reserve(size_t bytes);
  [[nodiscard]] size_t capacity() const { return capacity_; }

 private:
  struct Free {
    void operator()(void* block) const;
  };
  std::unique_ptr<void, Free> block_;
  size_t capacity_ = 0;
};

/// pool.parallel_for through a plain function pointer.
void run_chunks(ThreadPool& pool, int64_t chunks, void (*body)(void* closure, int64_t chunk, int thread), void* closure);

/// One unit of attention work: queries [first_query, first_query + queries) of a sequence, one head.
struct AttentionItem {
  int64_t begin, length;  // of the sequence, in tokens
  int64_t first_query, queries;
  int64_t head;
};
/// Longest sequence of cu_seqlens [sequences + 1]; 0 when there is none.
/// Throws Error(invalid_argument) when it does not start at 0, falls, or a sequence is longer than `limit`.
int64_t longest_sequence(const int32_t* cu_seqlens, int64_t sequences, int64_t limit);
/// How many items attention_items writes.
int64_t count_attention_items(const int32_t* cu_seqlens, int64_t sequences, int64_t heads, int64_t query_block);
/// Items of all sequences and heads, costliest first (then in order), so that uneven batches balance.
void attention_items(const int32_t* cu_seqlens, int64_t sequences, int64_t heads, int64_t query_block, AttentionItem* items);

}  // namespace muster::cpu
