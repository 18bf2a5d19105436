// Shards: what is written comes back, what does not hold is named with table and row; masks; batches that only depend on their number;
// ranks that share an epoch without overlap.
#include "data/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "data/documents.h"
#include "data/hdf5_file.h"
#include "data/pretraining_loader.h"
#include "storage/file.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Shards : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "muster_shards_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// A shard whose row r is [2, 10 + first + r, ..., 3] of length 5 + r % 3, one mask at 2.
  std::string make(const std::string& name, int64_t rows, int32_t first, bool masks = true) const {
    Shard shard;
    shard.path = folder_ + "/" + name, shard.max_tokens = 8, shard.max_masks = 3;
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<int32_t> ids(static_cast<size_t>(5 + r % 3), 10 + first + static_cast<int32_t>(r));
      ids.front() = 2, ids.back() = 3;
      std::vector<int32_t> segments(ids.size(), 0), positions, labels;
      if (masks) {
        labels.push_back(ids[2]), positions.push_back(2);
        ids[2] = 4;
      }
      shard.append(ids, segments, positions, labels);
      shard.next_labels.push_back(static_cast<int32_t>(r % 2));
    }
    write_shard(shard);
    return shard.path;
  }
  PretrainingLoaderOptions options(std::vector<std::string> files) const {
    PretrainingLoaderOptions o;
    o.files = std::move(files), o.batch_size = 4, o.seed = 9;
    o.masking.mask_id = 4, o.masking.vocab_size = 1000;
    o.masking.special.assign(1000, false);
    for (const size_t id : {0, 2, 3, 4}) o.masking.special[id] = true;
    return o;
  }
  std::string error_of(const std::vector<Hdf5Table>& tables) const {
    write_hdf5(folder_ + "/bad.hdf5", tables);
    try {
      (void)read_shard(folder_ + "/bad.hdf5", 50);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  std::string folder_;
};

TEST_F(Shards, WhatIsWrittenComesBackWithoutItsPadding) {
  const Shard shard = read_shard(make("a.hdf5", 4, 0));
  EXPECT_EQ(shard.rows(), 4);
  EXPECT_THAT(shard.ids_of(0), ElementsAre(2, 10, 4, 10, 3));
  EXPECT_THAT(shard.ids_of(2), ElementsAre(2, 12, 4, 12, 12, 12, 3));
  EXPECT_THAT(shard.positions_of(1), ElementsAre(2));
  EXPECT_THAT(shard.labels_of(1), ElementsAre(11));
  EXPECT_THAT(shard.next_labels, ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(shard.max_tokens, 8);
  EXPECT_EQ(storage::read_file(make("b.hdf5", 4, 0)), storage::read_file(folder_ + "/a.hdf5")) << "the same bytes";
}

TEST_F(Shards, WhatDoesNotHoldIsNamed) {
  const std::vector<int32_t> ids{2, 10, 11, 3, 2, 12, 3, 0}, mask{1, 1, 1, 1, 1, 1, 1, 0}, segments(8, 0), positions{1, 2, 1, 0},
      labels{10, 11, 12, 0}, next{0, 1};
  const auto tables = [&](const std::string& name, const std::vector<int32_t>& values, int64_t width) {
    std::vector<Hdf5Table> t{{"input_ids", 2, 4, false, ids},        {"input_mask", 2, 4, true, mask},
                             {"segment_ids", 2, 4, true, segments},  {"masked_lm_positions", 2, 2, false, positions},
                             {"masked_lm_ids", 2, 2, false, labels}, {"next_sentence_labels", 2, 0, true, next}};
    for (Hdf5Table& table : t)
      if (table.name == name)
        table.values = values, table.width = width, table.rows = static_cast<int64_t>(values.size()) / std::max<int64_t>(1, width);
    return t;
  };
  EXPECT_EQ(error_of(tables("", {}, 0)), "");
  EXPECT_THAT(error_of(tables("input_ids", {2, 10, 50, 3, 2, 12, 3, 0}, 4)), HasSubstr("row 0: input_ids has 50, the vocabulary 50 words"));
  EXPECT_THAT(error_of(tables("input_mask", {1, 1, 1, 1, 1, 0, 1, 0}, 4)), HasSubstr("row 1: input_mask is not ones and then zeros"));
  EXPECT_THAT(error_of(tables("segment_ids", {0, 0, 2, 0, 0, 0, 0, 0}, 4)), HasSubstr("row 0: segment_ids has a 2"));
  EXPECT_THAT(error_of(tables("masked_lm_positions", {2, 1, 1, 0}, 2)), HasSubstr("row 0: masked_lm_positions has 1 at place 1"));
  EXPECT_THAT(error_of(tables("masked_lm_positions", {1, 2, 3, 0}, 2)), HasSubstr("row 1: masked_lm_positions has 3"));
  EXPECT_THAT(error_of(tables("next_sentence_labels", {0, 2}, 0)), HasSubstr("row 1: next_sentence_labels has a 2"));
  EXPECT_THAT(error_of(tables("masked_lm_ids", {10, 11, 12}, 1)), HasSubstr("masked_lm_ids [3, 1]"));
  EXPECT_THAT(error_of({{"input_ids", 2, 4, false, ids}}), HasSubstr("has no table input_mask"));
  storage::write_file_atomic(folder_ + "/foreign.hdf5", "no HDF5 at all");
  EXPECT_THROW((void)read_shard(folder_ + "/foreign.hdf5"), Error);
  const std::string whole = storage::read_file(make("whole.hdf5", 50, 0));
  for (const size_t size : {size_t{0}, size_t{100}, whole.size() / 2, whole.size() - 1}) {
    storage::write_file_atomic(folder_ + "/cut.hdf5", whole.substr(0, size));
    EXPECT_THROW((void)read_shard(folder_ + "/cut.hdf5"), Error) << size;
  }
}

/// First words of a batch's sequences: which row each was.
std::vector<int32_t> rows_of(const PretrainingBatch& batch) {
  std::vector<int32_t> rows;
  for (int64_t s = 0; s < batch.tokens.sequences(); ++s)
    rows.push_back(batch.tokens.ids[static_cast<size_t>(batch.tokens.cu_seqlens[static_cast<size_t>(s)] + 1)]);
  return rows;
}

TEST_F(Shards, RanksShareAnEpochWithoutOverlapAndEpochsDiffer) {
  const std::vector<std::string> files{make("a.hdf5", 13, 0), make("b.hdf5", 7, 13), make("c.hdf5", 16, 20)};
  std::multiset<int32_t> seen;
  std::vector<std::vector<int32_t>> first, second;
  for (int rank = 0; rank < 3; ++rank) {
    PretrainingLoaderOptions o = options(files);
    o.rank = rank, o.world_size = 3;
    PretrainingLoader loader(o);
    ASSERT_EQ(loader.batches_per_epoch(), 3);
    for (int64_t i = 0; i < 3; ++i) {
      first.push_back(rows_of(loader.batch(i)));
      seen.insert(first.back().begin(), first.back().end());
    }
    for (int64_t i = 3; i < 6; ++i) second.push_back(rows_of(loader.batch(i)));
  }
  EXPECT_EQ(seen.size(), 36u);
  EXPECT_EQ(std::set<int32_t>(seen.begin(), seen.end()).size(), 36u) << "each row once";
  EXPECT_NE(first, second);
}

TEST_F(Shards, ABatchDependsOnItsNumberOnly) {
  const std::vector<std::string> files{make("a.hdf5", 13, 0, false), make("b.hdf5", 9, 13, false)};
  PretrainingLoader in_order(options(files)), any_order(options(files));
  std::vector<PretrainingBatch> batches;
  for (int64_t i = 0; i < 12; ++i) batches.push_back(in_order.batch(i));
  for (const int64_t i : {11, 3, 4, 0, 7}) {
    const PretrainingBatch batch = any_order.batch(i);
    EXPECT_EQ(batch.tokens.ids, batches[static_cast<size_t>(i)].tokens.ids);
    EXPECT_EQ(batch.masked_positions, batches[static_cast<size_t>(i)].masked_positions);
    EXPECT_FALSE(batch.masked_positions.empty()) << "shards without masks are masked on reading";
  }
}

TEST_F(Shards, RemaskingPutsTheWordsBackFirst) {
  PretrainingLoaderOptions o = options({make("a.hdf5", 8, 0)});
  o.remask = true;
  PretrainingLoader loader(o);
  for (int64_t i = 0; i < 20; ++i) {
    const PretrainingBatch batch = loader.batch(i);
    for (size_t k = 0; k < batch.masked_labels.size(); ++k)
      EXPECT_GE(batch.masked_labels[k], 10) << "never the mask, never a special token";
    std::set<int32_t> masked(batch.masked_positions.begin(), batch.masked_positions.end());
    for (size_t t = 0; t < batch.tokens.ids.size(); ++t)
      if (batch.tokens.ids[t] == 4) {
        EXPECT_TRUE(masked.contains(static_cast<int32_t>(t))) << "the file's own mask is gone";
      }
  }
}

TEST(Masking, SharesAreThoseOfThePaper) {
  MaskingOptions o;
  o.mask_id = 4, o.vocab_size = 5000;
  o.special.assign(5000, false), o.special[2] = o.special[3] = true;
  int64_t total = 0, masked = 0, by_mask = 0, kept = 0;
  Philox random(1);
  for (int n = 0; n < 400; ++n) {
    std::vector<int32_t> ids{2};
    for (int i = 0; i < 98; ++i) ids.push_back(100 + i);
    ids.push_back(3);
    const Masked m = mask(ids, o, random);
    EXPECT_EQ(m.positions.size(), 15u);
    EXPECT_TRUE(std::is_sorted(m.positions.begin(), m.positions.end()));
    total += 100, masked += 15;
    for (size_t k = 0; k < m.positions.size(); ++k) {
      const int32_t now = m.ids[static_cast<size_t>(m.positions[k])];
      EXPECT_EQ(m.labels[k], ids[static_cast<size_t>(m.positions[k])]);
      by_mask += now == 4, kept += now == m.labels[k];
    }
  }
  EXPECT_NEAR(static_cast<double>(by_mask) / static_cast<double>(masked), 0.8, 0.02);
  EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(masked), 0.1, 0.02);
}

TEST(Masking, WholeWordsAreMaskedTogether) {
  MaskingOptions o;
  o.probability = 0.3, o.whole_words = true, o.mask_id = 4, o.vocab_size = 100;
  o.special.assign(100, false), o.continues.assign(100, false);
  o.special[2] = o.special[3] = true, o.continues[50] = true;
  const std::vector<int32_t> ids{2, 10, 50, 50, 11, 12, 50, 13, 14, 3};
  Philox random(3);
  for (int n = 0; n < 50; ++n) {
    const Masked m = mask(ids, o, random);
    const std::set<int32_t> at(m.positions.begin(), m.positions.end());
    EXPECT_EQ(at.contains(1), at.contains(2));
    EXPECT_EQ(at.contains(1), at.contains(3));
    EXPECT_EQ(at.contains(5), at.contains(6));
  }
}

TEST(Sentences, EndWhereSentencesEnd) {
  EXPECT_THAT(
      split_sentences("Mr. Smith went home. He slept!  \"Good night?\" J. Doe said so, e.g. twice. then (he left.) The end"),
      ElementsAre("Mr. Smith went home.", "He slept!", "\"Good night?\"", "J. Doe said so, e.g. twice. then (he left.)", "The end"));
  EXPECT_THAT(split_sentences(" \n\t "), testing::IsEmpty());
}

}  // namespace
}  // namespace muster::data
