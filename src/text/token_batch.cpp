// Packing of sequences; see token_batch.h.
#include "text/token_batch.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace muster::text {

void TokenBatch::append(std::span<const int32_t> ids_of, std::span<const int32_t> type_ids_of) {
  if (!type_ids_of.empty() && type_ids_of.size() != ids_of.size()) {
    throw Error(ErrorKind::invalid_argument, "[token_batch] a sequence of {} ids came with {} type ids; give one for each id, or none",
                ids_of.size(), type_ids_of.size());
  }
  const size_t total = ids.size() + ids_of.size();
  if (total > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    throw Error(ErrorKind::too_large, "[token_batch] {} tokens in one batch, at most 2147483647; use smaller batches", total);
  }
  ids.insert(ids.end(), ids_of.begin(), ids_of.end());
  type_ids.insert(type_ids.end(), type_ids_of.begin(), type_ids_of.end());
  type_ids.resize(total, 0);
  cu_seqlens.push_back(static_cast<int32_t>(total));
  max_seqlen = std::max(max_seqlen, static_cast<int32_t>(ids_of.size()));
}

void TokenBatch::clear() {
  ids.clear();
  type_ids.clear();
  cu_seqlens.assign(1, 0);
  max_seqlen = 0;
}

}  // namespace muster::text
