#include "data/prepare.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "storage/file.h"
#include "storage/sha256.h"

namespace muster::data {
namespace {

using Ids = std::vector<int32_t>;
using TokenDocument = std::vector<Ids>;  // of sentences

constexpr const char* kRecord = "prepare.json";

void check(const PrepareOptions& o) {
  const auto need = [](bool holds, const std::string& flag, const char* rule) {
    if (!holds) throw Error(ErrorKind::usage, "--{}: {}", flag, rule);
  };
  need(o.max_seq_length >= 8 && o.max_seq_length <= 65536, "max_seq_length", "must be in 8..65536");
  need(o.max_predictions >= 1 && o.max_predictions <= o.max_seq_length, "max_predictions_per_seq", "must be in 1..max_seq_length");
  need(o.masked_lm_prob > 0 && o.masked_lm_prob < 1, "masked_lm_prob", "must be between 0 and 1");
  need(o.dupe_factor >= 1 && o.dupe_factor <= 1000, "dupe_factor", "must be in 1..1000");
  need(o.short_seq_prob >= 0 && o.short_seq_prob <= 1, "short_seq_prob", "must be in 0..1");
  need(o.shards >= 1 && o.shards <= 100'000, "num_shards", "must be in 1..100000");
  need(o.test_fraction >= 0 && o.test_fraction < 1, "test_fraction", "must be in 0..1, 1 excluded");
  need(!o.prefix.empty() && o.prefix.find('/') == std::string::npos, "prefix", "must be the beginning of a file name");
}

/// Makes the rows of one shard from its documents.
class ShardMaker {
 public:
  ShardMaker(const std::vector<const TokenDocument*>& documents, const PrepareOptions& options, const MaskingOptions& masking, int32_t cls,
             int32_t sep, uint64_t stream)
      : documents_(documents), o_(options), masking_(masking), cls_(cls), sep_(sep), random_(options.seed, stream) {
    shard_.max_tokens = o_.max_seq_length, shard_.max_masks = o_.max_predictions;
  }

  Shard run() {
    const int64_t passes = o_.dynamic ? 1 : o_.dupe_factor;
    for (int64_t pass = 0; pass < passes; ++pass) o_.pairs ? all_pairs() : all_blocks();
    for (size_t i = rows_.size(); i > 1; --i) std::swap(rows_[i - 1], rows_[random_.below(static_cast<uint32_t>(i))]);
    for (const Row& row : rows_) {
      if (o_.dynamic) {
        shard_.append(row.ids, row.segments, {}, {});
      } else {
        const Masked masked = mask(row.ids, masking_, random_);
        shard_.append(masked.ids, row.segments, masked.positions, masked.labels);
      }
      if (o_.pairs) shard_.next_labels.push_back(row.random_next);
    }
    return std::move(shard_);
  }

 private:
  struct Row {
    Ids ids, segments;
    int32_t random_next = 0;
  };

  uint32_t below(size_t n) { return random_.below(static_cast<uint32_t>(n)); }
  static int64_t size(const Ids& ids) { return static_cast<int64_t>(ids.size()); }
  static void extend(Ids& to, const Ids& from) { to.insert(to.end(), from.begin(), from.end()); }

  void all_pairs() {
    for (size_t d = 0; d < documents_.size(); ++d) pairs_of(d);
  }

  /// As create_instances_from_document: sentences are gathered up to a target length, the second segment is their rest or, half of the
  /// time, comes from another document; what was gathered and not used then comes again.
  void pairs_of(size_t d) {
    const TokenDocument& document = *documents_[d];
    const int64_t most = o_.max_seq_length - 3;
    int64_t target = aim(most);
    std::vector<const Ids*> chunk;
    int64_t length = 0;
    for (size_t i = 0; i < document.size(); ++i) {
      chunk.push_back(&document[i]);
      length += size(document[i]);
      if (i + 1 < document.size() && length < target) continue;
      const size_t first = chunk.size() > 1 ? 1 + below(chunk.size() - 1) : 1;
      Ids a, b;
      for (size_t k = 0; k < first; ++k) extend(a, *chunk[k]);
      const bool random_next = chunk.size() == 1 || random_.uniform() < 0.5f;
      if (random_next) {
        const TokenDocument& other = *documents_[other_than(d)];
        for (size_t k = below(other.size()); k < other.size() && size(b) < target - size(a); ++k) extend(b, other[k]);
        i -= chunk.size() - first;
      } else {
        for (size_t k = first; k < chunk.size(); ++k) extend(b, *chunk[k]);
      }
      shorten(a, b, most);
      if (!a.empty() && !b.empty()) rows_.push_back(joined(a, b, random_next));
      chunk.clear();
      length = 0;
      target = aim(most);
    }
  }

  int64_t aim(int64_t most) {
    return random_.uniform() < static_cast<float>(o_.short_seq_prob) ? 2 + below(static_cast<size_t>(most - 1)) : most;
  }

  size_t other_than(size_t d) {
    for (int tries = 0; tries < 10; ++tries)
      if (const size_t other = below(documents_.size()); other != d) return other;
    return d;
  }

  /// Drops tokens at either end of the longer one.
  void shorten(Ids& a, Ids& b, int64_t most) {
    size_t front_a = 0, front_b = 0, size_a = a.size(), size_b = b.size();
    while (static_cast<int64_t>(size_a + size_b) > most) {
      const bool from_front = random_.uniform() < 0.5f;
      if (size_a > size_b)
        --size_a, front_a += from_front;
      else
        --size_b, front_b += from_front;
    }
    a = Ids(a.begin() + static_cast<std::ptrdiff_t>(front_a), a.begin() + static_cast<std::ptrdiff_t>(front_a + size_a));
    b = Ids(b.begin() + static_cast<std::ptrdiff_t>(front_b), b.begin() + static_cast<std::ptrdiff_t>(front_b + size_b));
  }

  Row joined(const Ids& a, const Ids& b, bool random_next) const {
    Row row;
    row.ids.push_back(cls_);
    extend(row.ids, a);
    row.ids.push_back(sep_);
    row.segments.assign(row.ids.size(), 0);
    extend(row.ids, b);
    row.ids.push_back(sep_);
    row.segments.resize(row.ids.size(), 1);
    row.random_next = random_next;
    return row;
  }

  /// Full sentences back to back over the borders of documents, with a separator there; a sentence longer than a block is cut.
  void all_blocks() {
    const int64_t most = o_.max_seq_length - 2;
    std::vector<size_t> order(documents_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[below(i)]);
    Ids block;
    const auto flush = [&] {
      if (!block.empty() && block.back() == sep_) block.pop_back();
      if (block.empty()) return;
      Row row;
      row.ids.push_back(cls_);
      extend(row.ids, block);
      row.ids.push_back(sep_);
      row.segments.assign(row.ids.size(), 0);
      rows_.push_back(std::move(row));
      block.clear();
    };
    for (const size_t d : order) {
      for (const Ids& sentence : *documents_[d]) {
        for (size_t at = 0; at < sentence.size();) {
          const auto rest = static_cast<int64_t>(sentence.size() - at);
          if (size(block) + std::min(rest, most) > most) flush();
          const int64_t take = std::min(rest, most);
          block.insert(block.end(), sentence.begin() + static_cast<std::ptrdiff_t>(at),
                       sentence.begin() + static_cast<std::ptrdiff_t>(at) + take);
          at += static_cast<size_t>(take);
        }
      }
      if (!block.empty() && size(block) < most) block.push_back(sep_);
    }
    flush();
  }

  const std::vector<const TokenDocument*>& documents_;
  const PrepareOptions& o_;
  const MaskingOptions& masking_;
  int32_t cls_, sep_;
  Philox random_;
  std::vector<Row> rows_;
  Shard shard_;
};

std::vector<TokenDocument> tokenize_all(const std::vector<Document>& documents, const text::Tokenizer& tokenizer, ThreadPool& threads,
                                        const std::atomic<bool>* stop) {
  std::vector<TokenDocument> all(documents.size());
  threads.parallel_for(static_cast<int64_t>(documents.size()), [&](int64_t d) {
    if (stop && stop->load()) return;
    const text::EncodeOptions bare{false, 0};
    for (const std::string& sentence : documents[static_cast<size_t>(d)])
      if (Ids ids = tokenizer.encode(sentence, bare).ids; !ids.empty()) all[static_cast<size_t>(d)].push_back(std::move(ids));
  });
  if (stop && stop->load()) throw Error(ErrorKind::cancelled, "stopped by a signal");
  std::erase_if(all, [](const TokenDocument& d) { return d.empty(); });
  return all;
}

/// What the shards of a folder are made of; another run with the same goes on, with another is refused.
std::string record_of(const std::vector<TokenDocument>& documents, const PrepareOptions& o) {
  storage::Sha256 hash;
  for (const TokenDocument& d : documents)
    for (const Ids& s : d) hash.update(std::as_bytes(std::span(s)));
  const nlohmann::ordered_json json{{"format", o.pairs ? "pairs" : "blocks"},
                                    {"max_seq_length", o.max_seq_length},
                                    {"max_predictions_per_seq", o.max_predictions},
                                    {"masked_lm_prob", o.masked_lm_prob},
                                    {"masking", o.dynamic ? "dynamic" : "static"},
                                    {"whole_word_mask", o.whole_words},
                                    {"dupe_factor", o.dynamic ? 1 : o.dupe_factor},
                                    {"short_seq_prob", o.short_seq_prob},
                                    {"num_shards", o.shards},
                                    {"test_fraction", o.test_fraction},
                                    {"seed", o.seed},
                                    {"documents", documents.size()},
                                    {"tokens_sha256", hash.hex()}};
  return json.dump(2) + "\n";
}

}  // namespace

MaskingOptions masking_of(const text::Tokenizer& tokenizer) {
  MaskingOptions m;
  const auto mask_id = tokenizer.mask_id();
  if (!mask_id)
    throw Error(ErrorKind::invalid_argument, "the tokenizer has no mask token ([MASK] or <mask>): masked language modelling needs one");
  m.mask_id = *mask_id;
  m.vocab_size = tokenizer.vocab_size();
  m.special.resize(static_cast<size_t>(m.vocab_size));
  m.continues.resize(static_cast<size_t>(m.vocab_size));
  for (const auto id : {tokenizer.pad_id(), tokenizer.cls_id(), tokenizer.sep_id(), tokenizer.mask_id()})
    if (id) m.special[static_cast<size_t>(*id)] = true;
  // Word pieces go on with "##"; byte-level pieces begin a word with a blank, written U+0120.
  bool pieces = false;
  for (int32_t id = 0; id < m.vocab_size; ++id) pieces = pieces || tokenizer.id_to_token(id).starts_with("##");
  for (int32_t id = 0; id < m.vocab_size; ++id) {
    const std::string_view token = tokenizer.id_to_token(id);
    m.continues[static_cast<size_t>(id)] = pieces ? token.starts_with("##") : !token.starts_with("\xC4\xA0");
  }
  return m;
}

PrepareResult prepare(const std::vector<Document>& documents, const text::Tokenizer& tokenizer, const PrepareOptions& o,
                      ThreadPool& threads, const std::atomic<bool>* stop, const std::function<void(int64_t, int64_t)>& progress) {
  check(o);
  MaskingOptions masking = masking_of(tokenizer);
  masking.probability = o.masked_lm_prob, masking.max_predictions = o.max_predictions, masking.whole_words = o.whole_words;
  const auto cls = tokenizer.cls_id(), sep = tokenizer.sep_id();
  if (!cls || !sep)
    throw Error(ErrorKind::invalid_argument, "the tokenizer has no classification and separator tokens ([CLS], [SEP] or <s>, </s>)");
  const std::vector<TokenDocument> all = tokenize_all(documents, tokenizer, threads, stop);
  PrepareResult result;
  result.documents = static_cast<int64_t>(all.size());
  for (const TokenDocument& d : all)
    for (const Ids& s : d) ++result.sentences, result.tokens += static_cast<int64_t>(s.size());
  if (all.empty()) throw Error(ErrorKind::invalid_argument, "the input has no text");

  storage::make_folders(o.output);
  storage::remove_leftovers(o.output);
  const std::string record = record_of(all, o), record_path = o.output + "/" + kRecord;
  if (storage::is_file(record_path)) {
    if (storage::read_file(record_path) != record)
      throw Error(ErrorKind::invalid_argument, "{} holds shards of other texts or options ({}): choose another --output, or remove it",
                  o.output, record_path);
  } else {
    storage::write_file_atomic(record_path, record);
  }

  // Documents in a random order are dealt out: to the held-out file by chance, else one after another to the training files.
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  Philox random(o.seed, 1);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(static_cast<uint32_t>(i))]);
  const int64_t files = o.shards + (o.test_fraction > 0 ? 1 : 0);
  std::vector<std::vector<const TokenDocument*>> parts(static_cast<size_t>(files));
  const auto held_out =
      o.test_fraction > 0 ? std::max<size_t>(1, static_cast<size_t>(o.test_fraction * static_cast<double>(all.size()))) : 0;
  for (size_t i = 0; i < order.size(); ++i)
    parts[i < held_out ? static_cast<size_t>(o.shards) : (i - held_out) % static_cast<size_t>(o.shards)].push_back(&all[order[i]]);

  std::mutex mutex;
  threads.parallel_for(files, [&](int64_t f) {
    if (stop && stop->load()) return;
    const std::string path =
        f < o.shards ? fmt::format("{}/{}_training_{}.hdf5", o.output, o.prefix, f) : fmt::format("{}/{}_test_0.hdf5", o.output, o.prefix);
    int64_t rows = 0;
    const bool there = storage::is_file(path);
    if (there) {
      rows = shard_rows(path);
    } else if (!parts[static_cast<size_t>(f)].empty()) {
      Shard shard = ShardMaker(parts[static_cast<size_t>(f)], o, masking, *cls, *sep, 16 + static_cast<uint64_t>(f)).run();
      shard.path = path;
      rows = shard.rows();
      if (rows > 0) write_shard(shard);
    }
    const std::lock_guard lock(mutex);
    result.sequences += rows;
    result.shards += rows > 0;
    result.reused += there;
    if (progress) progress(result.shards, files);
  });
  if (stop && stop->load()) throw Error(ErrorKind::cancelled, "stopped by a signal");
  if (result.sequences == 0) throw Error(ErrorKind::invalid_argument, "the input is too short for one sequence of two segments");
  return result;
}

}  // namespace muster::data
