// What kernels compiled for wider instruction sets call in base code: so their objects hold no library code (std::function, error
// texts) that the linker could give to everyone and that would then need those instructions.
#pragma once
#include <cstddef>
#include <cstdint>

#include "backend/cpu/workspace.h"
#include "core/dtype.h"
#include "core/threads.h"

namespace muster::cpu {

/// pool.parallel_for through a plain function pointer.
void run_chunks(ThreadPool& pool, int64_t chunks, void (*body)(void* closure, int64_t chunk, int thread), void* closure);

/// pool.threads().
int thread_count(const ThreadPool& pool);

/// `bytes` of scratch aligned to 64, dead when the kernel returns.
std::byte* scratch(Workspace& workspace, size_t bytes);

/// Throws Error(internal): the kernel has no code for the dtype.
[[noreturn]] void no_kernel_for(DType dtype);

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
