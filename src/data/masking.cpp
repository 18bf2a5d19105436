#include "data/masking.h"

#include <algorithm>
#include <cmath>

namespace muster::data {

Masked mask(std::span<const int32_t> ids, const MaskingOptions& options, Philox& random) {
  const auto is = [](const std::vector<bool>& set, int32_t id) {
    return static_cast<size_t>(id) < set.size() && set[static_cast<size_t>(id)];
  };
  // Words as runs of positions: single tokens unless whole words are asked for.
  std::vector<std::pair<int32_t, int32_t>> words;
  for (int32_t i = 0; i < static_cast<int32_t>(ids.size()); ++i) {
    if (is(options.special, ids[static_cast<size_t>(i)])) continue;
    const bool joins =
        options.whole_words && !words.empty() && words.back().second == i && is(options.continues, ids[static_cast<size_t>(i)]);
    if (joins)
      ++words.back().second;
    else
      words.emplace_back(i, i + 1);
  }
  for (size_t i = words.size(); i > 1; --i) std::swap(words[i - 1], words[random.below(static_cast<uint32_t>(i))]);
  int64_t wanted = std::max<int64_t>(1, std::lround(options.probability * static_cast<double>(ids.size())));
  if (options.max_predictions > 0) wanted = std::min(wanted, options.max_predictions);

  Masked result{{ids.begin(), ids.end()}, {}, {}};
  for (const auto& [begin, end] : words) {
    if (static_cast<int64_t>(result.positions.size()) + (end - begin) > wanted) {
      if (static_cast<int64_t>(result.positions.size()) >= wanted) break;
      continue;  // a whole word that would be too many; a shorter one may follow
    }
    for (int32_t i = begin; i < end; ++i) result.positions.push_back(i);
  }
  std::sort(result.positions.begin(), result.positions.end());
  for (const int32_t p : result.positions) {
    int32_t& id = result.ids[static_cast<size_t>(p)];
    result.labels.push_back(id);
    const uint32_t draw = random.below(10);
    if (draw < 8)
      id = options.mask_id;
    else if (draw == 8)
      id = static_cast<int32_t>(random.below(static_cast<uint32_t>(options.vocab_size)));
  }
  return result;
}

}  // namespace muster::data
