#include "data/loader.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/philox.h"

namespace muster::data {
namespace {

constexpr uint64_t kShuffleStream = 0x73687566ull << 32;  // "shuf": apart from the streams of initialisation and dropout
constexpr int64_t kMegaBatch = 50;                        // batches sorted together, as Transformers' LengthGroupedSampler

using Order = std::vector<uint32_t>;

}  // namespace

struct Loader::State {
  const TokenizedDataset& dataset;
  LoaderOptions options;
  int64_t batches = 0;
  std::vector<int64_t> borders;  // of batches in the order, [batches + 1]; only with max_tokens
  mutable std::mutex mutex;
  mutable int64_t epoch = -1;
  mutable std::shared_ptr<const Order> order;  // of that epoch

  [[nodiscard]] int64_t rows() const { return dataset.rows(); }
  [[nodiscard]] int64_t global_batch() const { return options.batch_size * options.world_size; }
  [[nodiscard]] int32_t length(int64_t row) const {
    return dataset.tokens.cu_seqlens[static_cast<size_t>(row) + 1] - dataset.tokens.cu_seqlens[static_cast<size_t>(row)];
  }

  [[nodiscard]] Order make_order(int64_t of_epoch) const {
    Order result(static_cast<size_t>(rows()));
    std::iota(result.begin(), result.end(), 0U);
    if (options.shuffle) {
      Philox random(options.seed, kShuffleStream + static_cast<uint64_t>(of_epoch));
      for (size_t i = result.size(); i > 1; --i) std::swap(result[i - 1], result[random.below(static_cast<uint32_t>(i))]);
    }
    if (options.group_by_length) group(result);
    return result;
  }

  /// Mega-batches keep some chance in who meets whom; the longest row of all comes first, so that a lack of memory shows at once.
  void group(Order& order_of) const {
    const int64_t n = rows(), mega = std::max<int64_t>(1, std::min(n / (global_batch() * 4), kMegaBatch)) * global_batch();
    size_t longest = 0;
    for (int64_t begin = 0; begin < n; begin += mega) {
      const auto first = order_of.begin() + begin, last = order_of.begin() + std::min(begin + mega, n);
      std::stable_sort(first, last, [&](uint32_t a, uint32_t b) { return length(a) > length(b); });
      if (length(*first) > length(order_of[longest])) longest = static_cast<size_t>(begin);
    }
    std::swap(order_of[0], order_of[longest]);
  }

  std::shared_ptr<const Order> order_for(int64_t of_epoch) const {
    const int64_t key = options.shuffle ? of_epoch : 0;
    const std::lock_guard lock(mutex);
    if (order == nullptr || epoch != key) {
      order = std::make_shared<const Order>(make_order(key));
      epoch = key;
    }
    return order;
  }
};

Loader::Loader(const TokenizedDataset& dataset, LoaderOptions options) : state_(std::make_unique<State>(dataset, options)) {
  const auto refuse = [](std::string_view why) { return Error(ErrorKind::invalid_argument, "[loader] {}", why); };
  const int64_t n = dataset.rows();
  if (options.batch_size < 1 || options.batch_size > 1 << 24)
    throw refuse(fmt::format("batch size {} must be between 1 and {}", options.batch_size, 1 << 24));
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size)
    throw refuse(fmt::format("rank {} of {} does not exist", options.rank, options.world_size));
  if (options.max_tokens < 0 || (options.max_tokens > 0 && (options.shuffle || options.world_size > 1)))
    throw refuse("max_tokens needs one rank and no shuffling");
  if (n == 0) throw refuse("the dataset has no row; give one with rows");
  if (dataset.labels.size() != static_cast<size_t>(n)) throw refuse(fmt::format("{} labels for {} rows", dataset.labels.size(), n));
  State& s = *state_;
  if (options.max_tokens == 0) {
    s.batches = options.drop_last ? n / s.global_batch() : (n + s.global_batch() - 1) / s.global_batch();
    if (s.batches == 0)
      throw refuse(
          fmt::format("{} rows are fewer than one batch of {}, and the last one is dropped; lower the batch size", n, s.global_batch()));
    return;
  }
  const auto order = s.order_for(0);
  int64_t begin = 0, tokens = 0;
  s.borders.push_back(0);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t length = s.length((*order)[static_cast<size_t>(i)]);
    if (i > begin && (i - begin == options.batch_size || tokens + length > options.max_tokens)) {
      s.borders.push_back(begin = i);
      tokens = 0;
    }
    tokens += length;
  }
  s.borders.push_back(n);
  s.batches = static_cast<int64_t>(s.borders.size()) - 1;
}

Loader::~Loader() = default;

int64_t Loader::batches_per_epoch() const { return state_->batches; }
const LoaderOptions& Loader::options() const { return state_->options; }

Batch Loader::batch(int64_t epoch, int64_t index) const {
  const State& s = *state_;
  if (epoch < 0 || index < 0 || index >= s.batches)
    throw Error(ErrorKind::invalid_argument, "[loader] batch {} of epoch {} does not exist: {} an epoch", index, epoch, s.batches);
  const auto order = s.order_for(epoch);
  const bool by_tokens = !s.borders.empty();
  const int64_t begin = by_tokens ? s.borders[static_cast<size_t>(index)] : index * s.global_batch();
  const int64_t end = by_tokens ? s.borders[static_cast<size_t>(index) + 1] : std::min(begin + s.global_batch(), s.rows());
  Batch result;
  for (int64_t i = begin + s.options.rank; i < end; i += s.options.world_size) {
    const int64_t row = (*order)[static_cast<size_t>(i)];
    const auto from = static_cast<size_t>(s.dataset.tokens.cu_seqlens[static_cast<size_t>(row)]), size = static_cast<size_t>(s.length(row));
    result.tokens.append(std::span(s.dataset.tokens.ids).subspan(from, size), std::span(s.dataset.tokens.type_ids).subspan(from, size));
    result.labels.push_back(s.dataset.labels[static_cast<size_t>(row)]);
    result.rows.push_back(row);
  }
  return result;
}

}  // namespace muster::data
