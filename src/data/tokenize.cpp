#include "data/tokenize.h"

#include <algorithm>
#include <span>

#include "core/error.h"

namespace muster::data {

TokenizedDataset tokenize(const Dataset& dataset, const text::Tokenizer& tokenizer, int max_length, ThreadPool& pool) {
  constexpr size_t kRows = 256;  // a chunk
  if (max_length <= 0) throw Error(ErrorKind::invalid_argument, "max_length {} must be positive", max_length);
  const size_t rows = dataset.size();
  const size_t chunks = (rows + kRows - 1) / kRows;
  // Whole first, to know which rows are cut; those few are encoded again.
  std::vector<text::TokenBatch> done(chunks);
  std::vector<int64_t> truncated(chunks, 0);
  pool.parallel_for(static_cast<int64_t>(chunks), [&](int64_t chunk) {
    text::TokenBatch& batch = done[static_cast<size_t>(chunk)];
    std::vector<int32_t> ids;
    const size_t begin = static_cast<size_t>(chunk) * kRows, end = std::min(begin + kRows, rows);
    for (size_t row = begin; row < end; ++row) {
      if (dataset.pairs.empty()) {
        ids.clear();
        tokenizer.encode_ids(dataset.texts[row], 0, ids);
        if (ids.size() > static_cast<size_t>(max_length)) {
          ++truncated[static_cast<size_t>(chunk)];
          ids.clear();
          tokenizer.encode_ids(dataset.texts[row], max_length, ids);
        }
        batch.append(ids);
        continue;
      }
      text::Encoding encoding = tokenizer.encode_pair(dataset.texts[row], dataset.pairs[row]);
      if (encoding.ids.size() > static_cast<size_t>(max_length)) {
        ++truncated[static_cast<size_t>(chunk)];
        encoding = tokenizer.encode_pair(dataset.texts[row], dataset.pairs[row], {.max_length = max_length});
      }
      batch.append(encoding.ids, encoding.type_ids);
    }
  });
  TokenizedDataset result;
  result.labels = dataset.labels;
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    result.truncated += truncated[chunk];
    const text::TokenBatch& part = done[chunk];
    for (int64_t i = 0; i < part.sequences(); ++i) {
      const auto begin = static_cast<size_t>(part.cu_seqlens[static_cast<size_t>(i)]),
                 size = static_cast<size_t>(part.cu_seqlens[static_cast<size_t>(i) + 1]) - begin;
      result.tokens.append(std::span(part.ids).subspan(begin, size), std::span(part.type_ids).subspan(begin, size));
    }
    done[chunk] = {};
  }
  return result;
}

}  // namespace muster::data
