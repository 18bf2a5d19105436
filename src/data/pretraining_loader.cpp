#include "data/pretraining_loader.h"

#include <algorithm>
#include <future>
#include <list>
#include <mutex>
#include <numeric>

#include "core/error.h"
#include "core/log.h"
#include "data/shard.h"

namespace muster::data {
namespace {

constexpr size_t kShardsInMemory = 3;
// Streams of the random numbers, so that orders and masks share none.
constexpr uint64_t kShardOrder = 0x7368617264ull, kRowOrder = 0x726f7773ull, kMasks = 0x6d61736b73ull;

template <typename T>
void shuffle(std::vector<T>& items, Philox& random) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(static_cast<uint32_t>(i))]);
}

}  // namespace

struct PretrainingLoader::State {
  PretrainingLoaderOptions options;
  std::vector<int64_t> rows;  // of each file
  int64_t sequences = 0, bad = 0;

  std::mutex mutex;                                                    // of what follows
  std::list<std::pair<int32_t, std::shared_ptr<const Shard>>> recent;  // the latest used first
  std::future<PretrainingBatch> ahead;
  int64_t ahead_index = -1;

  [[nodiscard]] int64_t global_batch() const { return options.batch_size * options.world_size; }
  [[nodiscard]] int64_t batches() const {
    return options.shuffle ? sequences / global_batch() : (sequences + global_batch() - 1) / global_batch();
  }

  std::shared_ptr<const Shard> shard(int32_t file) {
    {
      const std::lock_guard lock(mutex);
      for (auto it = recent.begin(); it != recent.end(); ++it)
        if (it->first == file) {
          recent.splice(recent.begin(), recent, it);
          return recent.front().second;
        }
    }
    auto read = std::make_shared<const Shard>(read_shard(options.files[static_cast<size_t>(file)], options.masking.vocab_size));
    const std::lock_guard lock(mutex);
    recent.emplace_front(file, read);
    if (recent.size() > kShardsInMemory) recent.pop_back();
    return read;
  }

  /// The files of an epoch in their order.
  [[nodiscard]] std::vector<int32_t> order_of(int64_t epoch) const {
    std::vector<int32_t> order(rows.size());
    std::iota(order.begin(), order.end(), 0);
    if (options.shuffle) {
      Philox random(options.seed, kShardOrder + static_cast<uint64_t>(epoch));
      shuffle(order, random);
    }
    return order;
  }

  /// The rows of a file in the order of an epoch.
  [[nodiscard]] std::vector<int64_t> rows_of(int32_t file, int64_t epoch) const {
    std::vector<int64_t> order(static_cast<size_t>(rows[static_cast<size_t>(file)]));
    std::iota(order.begin(), order.end(), 0);
    if (options.shuffle) {
      Philox random(options.seed, kRowOrder ^ (static_cast<uint64_t>(epoch) << 32 | static_cast<uint64_t>(file)));
      shuffle(order, random);
    }
    return order;
  }

  PretrainingBatch make(int64_t index) {
    const int64_t epoch = index / batches(), k = index % batches();
    int64_t begin = k * global_batch() + options.rank * options.batch_size;
    const int64_t end = std::min(begin + options.batch_size, sequences);
    PretrainingBatch batch;
    int64_t first = 0;  // of the file, in the order of the epoch
    for (const int32_t file : order_of(epoch)) {
      const int64_t count = rows[static_cast<size_t>(file)];
      if (begin < end && begin < first + count) {
        const std::shared_ptr<const Shard> from = shard(file);
        if (from->rows() != count)
          throw Error(ErrorKind::corrupt, "{}: has {} rows now, had {}: it must not change while it is read", from->path, from->rows(),
                      count);
        const std::vector<int64_t> order = rows_of(file, epoch);
        for (; begin < std::min(end, first + count); ++begin) append(batch, *from, file, order[static_cast<size_t>(begin - first)], epoch);
      }
      first += count;
    }
    return batch;
  }

  void append(PretrainingBatch& batch, const Shard& from, int32_t file, int64_t row, int64_t epoch) const {
    if (options.max_seq_length > 0 && from.length(row) > options.max_seq_length)
      throw Error(ErrorKind::invalid_argument, "{}: row {} has {} tokens, more than --max_seq_length {}", from.path, row, from.length(row),
                  options.max_seq_length);
    const auto offset = static_cast<int32_t>(batch.tokens.tokens());
    const auto positions = from.positions_of(row), labels = from.labels_of(row);
    const auto add_masks = [&](std::span<const int32_t> at, std::span<const int32_t> words) {
      for (const int32_t p : at) batch.masked_positions.push_back(offset + p);
      batch.masked_labels.insert(batch.masked_labels.end(), words.begin(), words.end());
    };
    if (options.remask || positions.empty()) {
      std::vector<int32_t> ids(from.ids_of(row).begin(), from.ids_of(row).end());
      for (size_t i = 0; i < positions.size(); ++i) ids[static_cast<size_t>(positions[i])] = labels[i];
      Philox random(options.seed,
                    kMasks ^ (static_cast<uint64_t>(epoch) << 44 ^ static_cast<uint64_t>(file) << 28 ^ static_cast<uint64_t>(row)));
      const Masked masked = mask(ids, options.masking, random);
      batch.tokens.append(masked.ids, from.segments_of(row));
      add_masks(masked.positions, masked.labels);
    } else {
      batch.tokens.append(from.ids_of(row), from.segments_of(row));
      add_masks(positions, labels);
    }
    if (!from.next_labels.empty()) batch.next_sentence.push_back(from.next_labels[static_cast<size_t>(row)]);
    batch.rows.emplace_back(file, row);
  }
};

PretrainingLoader::PretrainingLoader(PretrainingLoaderOptions options) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.options = std::move(options);
  std::vector<std::string> good;
  for (const std::string& file : s.options.files) {
    try {
      // A bad shard is found now, not after hours: its tables are read once when it may be skipped.
      const int64_t rows = s.options.skip_bad_shards ? read_shard(file, s.options.masking.vocab_size).rows() : shard_rows(file);
      if (rows == 0) continue;
      s.rows.push_back(rows);
      s.sequences += rows;
      good.push_back(file);
    } catch (const Error& e) {
      if (!s.options.skip_bad_shards) throw;
      ++s.bad;
      log_warning("skipped a bad shard: {}", e.what());
    }
  }
  s.options.files = std::move(good);
  if (s.sequences < (s.options.shuffle ? s.global_batch() : 1))
    throw Error(ErrorKind::invalid_argument, "{} shards with {} sequences: fewer than one batch of {}", s.options.files.size(), s.sequences,
                s.global_batch());
}

PretrainingLoader::~PretrainingLoader() = default;

int64_t PretrainingLoader::batches_per_epoch() const { return state_->batches(); }
int64_t PretrainingLoader::sequences() const { return state_->sequences; }
const std::vector<std::string>& PretrainingLoader::files() const { return state_->options.files; }
int64_t PretrainingLoader::bad_shards() const { return state_->bad; }

PretrainingBatch PretrainingLoader::batch(int64_t index) {
  State& s = *state_;
  PretrainingBatch batch = s.ahead_index == index && s.ahead.valid() ? s.ahead.get() : s.make(index);
  if (s.ahead.valid()) s.ahead.wait();
  s.ahead_index = index + 1;
  s.ahead = std::async(std::launch::async, [&s, next = index + 1] { return s.make(next); });
  return batch;
}

}  // namespace muster::data
