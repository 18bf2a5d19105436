// The base-code side of the kernels: loops, scratch, errors, attention's work list and the choice of a table.
#include "backend/cpu/kernel_support.h"

#include <algorithm>
#include <tuple>

#include "backend/cpu/isa/isa.h"
#include "backend/cpu/kernels.h"
#include "core/error.h"

namespace muster::cpu {

void run_chunks(ThreadPool& pool, int64_t chunks, void (*body)(void*, int64_t, int), void* closure) {
  pool.parallel_for(chunks, [=](int64_t chunk, int thread) { body(closure, chunk, thread); });
}

int thread_count(const ThreadPool& pool) { return pool.threads(); }

std::byte* scratch(Workspace& workspace, size_t bytes) { return workspace.shared(Workspace::Slot::left, bytes); }

void no_kernel_for(DType dtype) { throw Error(ErrorKind::internal, "[cpu] internal error: no kernel for dtype {}", name_of(dtype)); }

int64_t longest_sequence(const int32_t* cu_seqlens, int64_t sequences, int64_t limit) {
  int64_t longest = 0;
  if (sequences > 0 && cu_seqlens[0] != 0)
    throw Error(ErrorKind::invalid_argument, "[attention] cu_seqlens starts at {}: it must start at 0", cu_seqlens[0]);
  for (int64_t i = 0; i < sequences; ++i) {
    const int64_t length = int64_t{cu_seqlens[i + 1]} - cu_seqlens[i];
    if (length < 0)
      throw Error(ErrorKind::invalid_argument, "[attention] cu_seqlens falls from {} to {} at sequence {}: it must rise", cu_seqlens[i],
                  cu_seqlens[i + 1], i);
    if (length > limit)
      throw Error(ErrorKind::invalid_argument, "[attention] sequence {} has {} tokens: at most {} are possible, shorten it", i, length,
                  limit);
    longest = std::max(longest, length);
  }
  return longest;
}

int64_t count_attention_items(const int32_t* cu_seqlens, int64_t sequences, int64_t heads, int64_t query_block) {
  int64_t count = 0;
  for (int64_t i = 0; i < sequences; ++i) count += (cu_seqlens[i + 1] - cu_seqlens[i] + query_block - 1) / query_block;
  return count * heads;
}

void attention_items(const int32_t* cu_seqlens, int64_t sequences, int64_t heads, int64_t query_block, AttentionItem* items) {
  AttentionItem* end = items;
  for (int64_t i = 0; i < sequences; ++i) {
    const int64_t begin = cu_seqlens[i], length = cu_seqlens[i + 1] - begin;
    for (int64_t q = 0; q < length; q += query_block)
      for (int64_t h = 0; h < heads; ++h) *end++ = {begin, length, q, std::min(query_block, length - q), h};
  }
  // Neighbours in this order stay neighbours among equals: heads of one sequence share its cache lines.
  const auto key = [](const AttentionItem& i) { return std::tuple(-i.length * i.queries, i.begin, i.first_query, i.head); };
  std::sort(items, end, [&](const AttentionItem& a, const AttentionItem& b) { return key(a) < key(b); });
}

const Kernels& kernels(Isa isa) {
  switch (isa) {
    case Isa::avx2: return avx2::table();
    case Isa::avx512:
    case Isa::amx: return avx512::table();
  }
  return avx2::table();
}

}  // namespace muster::cpu
