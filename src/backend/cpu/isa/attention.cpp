// Self attention over packed sequences, forward and backward. One item = one head of one sequence: its keys and values are packed to f32
// once, then tiles of kQueries x kKeys scores are computed, used and forgotten. Tiles follow the position inside the sequence, so a
// token's result depends on its own sequence alone.
#include "backend/cpu/isa/dropout_bits.h"
#include "backend/cpu/isa/small_product.h"
#include "backend/cpu/isa/transpose_tile.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {
namespace {

constexpr int64_t kQueries = 48, kKeys = 64;    // of a tile: 12 KB of scores
constexpr int64_t kQueryBlock = 256;            // queries of one forward item: long sequences spread over threads
constexpr int64_t kLongest = int64_t{1} << 30;  // without dropout, whose index holds 16 bits of key

/// Hands out pieces of one thread's scratch, or only counts them.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}
  float* floats(int64_t n) {
    std::byte* p = base_ == nullptr ? nullptr : base_ + used_;
    used_ += static_cast<size_t>(ceil_to(n, 16)) * sizeof(float);
    return reinterpret_cast<float*>(p);
  }
  [[nodiscard]] size_t used() const { return used_; }

 private:
  std::byte* base_;
  size_t used_ = 0;
};

/// rows x columns of T with a stride, times `scale` -> f32 with zeros up to `padded` columns.
template <typename T>
void pack_rows(const T* x, int64_t stride, int64_t rows, int64_t columns, float* out, int64_t padded, float scale = 1.0f) {
  for (int64_t r = 0; r < rows; ++r)
    each_vector(columns, [&](int64_t i, int count) { store(out + r * padded + i, load_n(x + r * stride + i, count) * scale); });
}

/// The transpose of keys [begin of a tile, + keys): [columns, padded keys], zeros beyond `keys`.
template <typename T>
void pack_tile(const T* x, int64_t stride, int64_t keys, int64_t columns, float* out, int64_t padded) {
  for (int64_t k = 0; k < keys; k += kLanes)
    for (int64_t c = 0; c < columns; c += kLanes)
      transpose_tile(x + k * stride + c, stride, smaller(kLanes, keys - k), smaller(kLanes, columns - c), out + c * padded + k, padded,
                     kLanes);
}

template <typename T>
void pack_tiles(const T* x, int64_t stride, int64_t keys, int64_t columns, float* out) {
  for (int64_t k = 0; k < keys; k += kKeys) {
    const int64_t count = smaller(kKeys, keys - k);
    pack_tile(x + k * stride, stride, count, columns, out + k * columns, ceil_to(count, kLanes));
  }
}

template <typename T>
void unpack_rows(const float* x, int64_t padded, int64_t rows, int64_t columns, T* out, int64_t stride, float scale = 1.0f) {
  for (int64_t r = 0; r < rows; ++r)
    each_vector(columns, [&](int64_t i, int count) { store_n(out + r * stride + i, load(x + r * padded + i) * scale, count); });
}

/// Of the scores; folded into the packed queries.
float score_scale(int64_t head_size) { return 1.0f / __builtin_sqrtf(static_cast<float>(head_size)); }

/// p *= dropout factors of the keys [first_key, first_key + keys) of a query.
void drop(const Dropout& dropout, uint64_t row_index, int64_t first_key, int64_t keys, float* p) {
  uint16_t buffer[dropout_buffer(kKeys)];
  const uint16_t* words = dropout_words(dropout, row_index + static_cast<uint64_t>(first_key), keys, buffer);
  for (int64_t i = 0; i < keys; i += kLanes) store(p + i, load(p + i) * dropout_factors(dropout.rate, words + i));
}

/// Scores of one query against one key tile -> exp(score - largest so far), pads 0; rescales what was summed before.
/// `total` has kLanes partial sums, `out` the sum of values so far [width].
inline void softmax_tile(float* scores, int64_t keys, bool first, float& largest, float* total, float* out, int64_t width) {
  const float lowest = -__builtin_inff();
  VecF most = splat(lowest);
  each_vector(keys, [&](int64_t i, int count) {
    const VecF s = keep_lanes(load(scores + i), count, lowest);
    most = s > most ? s : most;
  });
  const float tile_largest = max_lane(most), before = largest, now = first || tile_largest > before ? tile_largest : before;
  VecF sum_lanes{};
  if (!first) {
    const VecF correction = exp(splat(before - now));
    sum_lanes = load(total) * correction;
    if (now != before)
      for (int64_t i = 0; i < width; i += kLanes) store(out + i, load(out + i) * correction);
  }
  each_vector(keys, [&](int64_t i, int count) {
    const VecF p = keep_lanes(exp_flushed(load(scores + i) - now), count, 0.0f);
    store(scores + i, p);
    sum_lanes += p;
  });
  store(total, sum_lanes);
  largest = now;
}

template <typename T>
class Forward {
 public:
  Forward(const Attention& p, int64_t longest, std::byte* scratch_base)
      : p_(p), width_(p.heads * p.head_size), padded_(ceil_to(p.head_size, kLanes)), carver_(scratch_base) {
    keys_t_ = carver_.floats(p.head_size * ceil_to(longest, kKeys));
    values_ = carver_.floats(longest * padded_);
    query_ = carver_.floats(kQueries * padded_);
    out_ = carver_.floats(kQueries * padded_);
    scores_ = carver_.floats(kQueries * kKeys);
    total_ = carver_.floats(kQueries * kLanes);
    largest_ = carver_.floats(kQueries);
  }
  [[nodiscard]] size_t bytes() const { return carver_.used(); }

  void run(const AttentionItem& item) const {
    const int64_t stride = 3 * width_;
    const T* q = static_cast<const T*>(p_.qkv) + item.begin * stride + item.head * p_.head_size;
    pack_tiles(q + width_, stride, item.length, p_.head_size, keys_t_);
    pack_rows(q + 2 * width_, stride, item.length, p_.head_size, values_, padded_);
    for (int64_t i = 0; i < item.queries; i += kQueries)
      tile(item, item.first_query + i, smaller(kQueries, item.queries - i), q + (item.first_query + i) * stride);
  }

 private:
  void tile(const AttentionItem& item, int64_t first, int64_t queries, const T* q) const {
    pack_rows(q, 3 * width_, queries, p_.head_size, query_, padded_, score_scale(p_.head_size));
    for (int64_t k = 0; k < item.length; k += kKeys) {
      const int64_t keys = smaller(kKeys, item.length - k), padded_keys = ceil_to(keys, kLanes);
      small_product({query_, padded_, 1}, {keys_t_ + k * p_.head_size, padded_keys}, {scores_, kKeys}, queries, padded_keys, p_.head_size,
                    false);
      for (int64_t i = 0; i < queries; ++i) {
        softmax_tile(scores_ + i * kKeys, keys, k == 0, largest_[i], total_ + i * kLanes, out_ + i * padded_, padded_);
        if (p_.dropout.rate.threshold != 0)
          drop(p_.dropout, attention_dropout_index(item.begin + first + i, p_.heads, item.head, 0), k, keys, scores_ + i * kKeys);
      }
      small_product({scores_, kKeys, 1}, {values_ + k * padded_, padded_}, {out_, padded_}, queries, padded_, keys, k > 0);
    }
    const int64_t token = item.begin + first;
    T* out = static_cast<T*>(p_.out) + token * width_ + item.head * p_.head_size;
    for (int64_t i = 0; i < queries; ++i) {
      const float total = sum(load(total_ + i * kLanes)), inverse = 1.0f / total;
      each_vector(p_.head_size,
                  [&](int64_t c, int count) { store_n(out + i * width_ + c, load(out_ + i * padded_ + c) * inverse, count); });
      if (p_.lse != nullptr) p_.lse[(token + i) * p_.heads + item.head] = largest_[i] + log(splat(total))[0];
    }
  }

  const Attention& p_;
  int64_t width_, padded_;
  Carver carver_;
  float *keys_t_, *values_, *query_, *out_, *scores_, *total_, *largest_;
};

template <typename T>
class Backward {
 public:
  Backward(const AttentionGrad& p, int64_t longest, std::byte* scratch_base)
      : p_(p), width_(p.heads * p.head_size), padded_(ceil_to(p.head_size, kLanes)), carver_(scratch_base) {
    keys_t_ = carver_.floats(p.head_size * ceil_to(longest, kKeys));
    values_t_ = carver_.floats(p.head_size * ceil_to(longest, kKeys));
    keys_ = carver_.floats(longest * padded_);
    d_keys_ = carver_.floats(longest * padded_);
    d_values_ = carver_.floats(longest * padded_);
    query_ = carver_.floats(kQueries * padded_);
    d_query_ = carver_.floats(kQueries * padded_);
    d_out_ = carver_.floats(kQueries * padded_);
    weights_ = carver_.floats(kQueries * kKeys);
    d_scores_ = carver_.floats(kQueries * kKeys);
    delta_ = carver_.floats(kQueries);
  }
  [[nodiscard]] size_t bytes() const { return carver_.used(); }

  void run(const AttentionItem& item) const {
    const int64_t stride = 3 * width_, n = item.length, d = p_.head_size;
    const int64_t start = item.begin * stride + item.head * d;
    const T* q = static_cast<const T*>(p_.qkv) + start;
    T* dq = static_cast<T*>(p_.d_qkv) + start;
    pack_tiles(q + width_, stride, n, d, keys_t_);
    pack_tiles(q + 2 * width_, stride, n, d, values_t_);
    pack_rows(q + width_, stride, n, d, keys_, padded_);
    for (int64_t i = 0; i < n; i += kQueries) {
      const int64_t queries = smaller(kQueries, n - i);
      tile(item, i, queries, q + i * stride);
      unpack_rows(d_query_, padded_, queries, d, dq + i * stride, stride, score_scale(d));
    }
    unpack_rows(d_keys_, padded_, n, d, dq + width_, stride);
    unpack_rows(d_values_, padded_, n, d, dq + 2 * width_, stride);
  }

 private:
  void tile(const AttentionItem& item, int64_t first, int64_t queries, const T* q) const {
    const int64_t token = item.begin + first, d = p_.head_size, column = token * width_ + item.head * d;
    const T* out = static_cast<const T*>(p_.out) + column;
    pack_rows(q, 3 * width_, queries, d, query_, padded_, score_scale(d));  // so that d_keys_ comes out scaled
    pack_rows(static_cast<const T*>(p_.d_out) + column, width_, queries, d, d_out_, padded_);
    for (int64_t i = 0; i < queries; ++i)  // sum over keys of dP * P, which is the dot product of d_out and out
      delta_[i] =
          sum_vectors(d, [&](int64_t c, int count) { return load(d_out_ + i * padded_ + c) * load_n(out + i * width_ + c, count); });
    for (int64_t k = 0; k < item.length; k += kKeys) {
      const int64_t keys = smaller(kKeys, item.length - k), padded_keys = ceil_to(keys, kLanes);
      small_product({query_, padded_, 1}, {keys_t_ + k * d, padded_keys}, {weights_, kKeys}, queries, padded_keys, d, false);
      small_product({d_out_, padded_, 1}, {values_t_ + k * d, padded_keys}, {d_scores_, kKeys}, queries, padded_keys, d, false);
      for (int64_t i = 0; i < queries; ++i) row(item, token + i, k, keys, delta_[i], weights_ + i * kKeys, d_scores_ + i * kKeys);
      small_product({weights_, 1, kKeys}, {d_out_, padded_}, {d_values_ + k * padded_, padded_}, keys, padded_, queries, first > 0);
      small_product({d_scores_, 1, kKeys}, {query_, padded_}, {d_keys_ + k * padded_, padded_}, keys, padded_, queries, first > 0);
      small_product({d_scores_, kKeys, 1}, {keys_ + k * padded_, padded_}, {d_query_, padded_}, queries, padded_, keys, k > 0);
    }
  }

  /// Scores -> dropped probabilities; gradients of dropped probabilities -> gradients of q k^T. Lanes beyond `keys` are not read later.
  void row(const AttentionItem& item, int64_t token, int64_t first_key, int64_t keys, float delta, float* weights, float* d_scores) const {
    const float lse = p_.lse[token * p_.heads + item.head];
    const bool dropped = p_.dropout.rate.threshold != 0;
    uint16_t buffer[dropout_buffer(kKeys)];
    const uint16_t* words = buffer;
    if (dropped) {
      const uint64_t index = attention_dropout_index(token, p_.heads, item.head, first_key);
      words = dropout_words(p_.dropout, index, keys, buffer);
    }
    for (int64_t i = 0; i < keys; i += kLanes) {
      const VecF p = exp_flushed(load(weights + i) - lse), dp = load(d_scores + i);
      const VecF factor = dropped ? dropout_factors(p_.dropout.rate, words + i) : splat(1.0f);
      store(weights + i, p * factor);
      store(d_scores + i, p * (dp * factor - delta));
    }
  }

  const AttentionGrad& p_;
  int64_t width_, padded_;
  Carver carver_;
  float *keys_t_, *values_t_, *keys_, *d_keys_, *d_values_, *query_, *d_query_, *d_out_, *weights_, *d_scores_, *delta_;
};

/// Work<T>(p, longest, scratch).run(item) for every item, on scratch of the running thread.
template <typename Work, typename Params>
void run_items(const Context& context, const Params& p, int64_t query_block) {
  const int64_t longest = longest_sequence(p.cu_seqlens, p.sequences, p.dropout.rate.threshold != 0 ? 65536 : kLongest);
  if (longest == 0 || p.heads * p.head_size == 0) return;
  const int64_t block = query_block == 0 ? longest : query_block, count = count_attention_items(p.cu_seqlens, p.sequences, p.heads, block);
  const size_t item_bytes = static_cast<size_t>(ceil_to(count * static_cast<int64_t>(sizeof(AttentionItem)), 64));
  const size_t thread_bytes = static_cast<size_t>(ceil_to(static_cast<int64_t>(Work(p, longest, nullptr).bytes()), 4096) + 256);
  std::byte* base = scratch(context.workspace, item_bytes + thread_bytes * static_cast<size_t>(thread_count(context.pool)));
  auto* items = reinterpret_cast<AttentionItem*>(base);
  attention_items(p.cu_seqlens, p.sequences, p.heads, block, items);
  parallel(context, count,
           [&](int64_t i, int thread) { Work(p, longest, base + item_bytes + thread_bytes * static_cast<size_t>(thread)).run(items[i]); });
}

}  // namespace

void attention(const Context& context, const Attention& p) {
  with_dtype(p.dtype, [&](auto t) { run_items<Forward<decltype(t)>>(context, p, kQueryBlock); });
}

void attention_grad(const Context& context, const AttentionGrad& p) {
  with_dtype(p.dtype, [&](auto t) { run_items<Backward<decltype(t)>>(context, p, 0); });
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
