// Batches as a pure function of seed, epoch and index: complete, repeatable, grouped, sharded.
#include "data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/philox.h"
#include "core/threads.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using Rows = std::vector<int64_t>;

/// Row i has the id i in every place, so that a batch shows which row it took.
TokenizedDataset rows_of(const std::vector<int>& lengths) {
  TokenizedDataset data;
  for (size_t i = 0; i < lengths.size(); ++i) {
    data.tokens.append(std::vector<int32_t>(static_cast<size_t>(lengths[i]), static_cast<int32_t>(i)));
    data.labels.push_back(static_cast<int32_t>(i % 7));
  }
  return data;
}
TokenizedDataset random_rows(size_t n) {
  Philox random(1);
  std::vector<int> lengths(n);
  for (int& length : lengths) length = 2 + static_cast<int>(random.below(60));
  return rows_of(lengths);
}
Rows epoch_rows(const Loader& loader, int64_t epoch) {
  Rows rows;
  for (int64_t i = 0; i < loader.batches_per_epoch(); ++i)
    for (const int64_t row : loader.batch(epoch, i).rows) rows.push_back(row);
  return rows;
}
Rows all_rows(int64_t n) {
  Rows rows(static_cast<size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}
Rows sorted(Rows rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST(Loader, BatchesHoldTheirRows) {
  const TokenizedDataset data = random_rows(103);
  const Loader loader(data, {.batch_size = 10});
  ASSERT_EQ(loader.batches_per_epoch(), 11);
  for (int64_t i = 0; i < 11; ++i) {
    const Batch batch = loader.batch(0, i);
    ASSERT_EQ(batch.rows.size(), i < 10 ? 10U : 3U);
    ASSERT_EQ(batch.tokens.sequences(), static_cast<int64_t>(batch.rows.size()));
    for (size_t s = 0; s < batch.rows.size(); ++s) {
      const auto row = static_cast<size_t>(batch.rows[s]);
      ASSERT_EQ(batch.labels[s], data.labels[row]);
      ASSERT_EQ(batch.tokens.cu_seqlens[s + 1] - batch.tokens.cu_seqlens[s], data.tokens.cu_seqlens[row + 1] - data.tokens.cu_seqlens[row]);
      for (int32_t t = batch.tokens.cu_seqlens[s]; t < batch.tokens.cu_seqlens[s + 1]; ++t)
        ASSERT_EQ(batch.tokens.ids[static_cast<size_t>(t)], static_cast<int32_t>(row));
    }
  }
}

TEST(Loader, EveryEpochIsAnotherPermutationAndASeedGivesTheSame) {
  const TokenizedDataset data = random_rows(500);
  const Loader one(data, {.batch_size = 32, .seed = 3}), same(data, {.batch_size = 32, .seed = 3}),
      other(data, {.batch_size = 32, .seed = 4});
  std::set<Rows> seen;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    const Rows rows = epoch_rows(one, epoch);
    EXPECT_EQ(sorted(rows), all_rows(500));
    EXPECT_NE(rows, all_rows(500));
    EXPECT_EQ(rows, epoch_rows(same, epoch));
    EXPECT_NE(rows, epoch_rows(other, epoch));
    EXPECT_TRUE(seen.insert(rows).second);
  }
  EXPECT_EQ(epoch_rows(Loader(data, {.batch_size = 7, .shuffle = false}), 3), all_rows(500));
}

TEST(Loader, AnyBatchCanBeAskedForFirst) {
  const TokenizedDataset data = random_rows(200);
  const LoaderOptions options{.batch_size = 16, .group_by_length = true, .seed = 9};
  const Loader straight(data, options);
  std::vector<Rows> expected;
  for (int64_t epoch = 0; epoch < 3; ++epoch)
    for (int64_t i = 0; i < straight.batches_per_epoch(); ++i) expected.push_back(straight.batch(epoch, i).rows);
  const Loader jumping(data, options);
  for (size_t i = expected.size(); i-- > 0;) {
    const auto at = static_cast<int64_t>(i);
    EXPECT_EQ(jumping.batch(at / straight.batches_per_epoch(), at % straight.batches_per_epoch()).rows, expected[i]);
  }
}

TEST(Loader, GroupingPutsLikeLengthsTogetherAndTheLongestFirst) {
  const TokenizedDataset data = random_rows(5000);
  const auto length = [&](int64_t row) {
    return data.tokens.cu_seqlens[static_cast<size_t>(row) + 1] - data.tokens.cu_seqlens[static_cast<size_t>(row)];
  };
  const Loader loader(data, {.batch_size = 16, .group_by_length = true});
  const Rows rows = epoch_rows(loader, 1);
  EXPECT_EQ(sorted(rows), all_rows(5000));
  EXPECT_EQ(length(rows.front()), data.tokens.max_seqlen);
  int64_t spread = 0;
  for (int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const Batch batch = loader.batch(1, i);
    const auto [low, high] =
        std::minmax_element(batch.rows.begin(), batch.rows.end(), [&](int64_t a, int64_t b) { return length(a) < length(b); });
    spread += length(*high) - length(*low);
  }
  EXPECT_LT(spread / loader.batches_per_epoch(), 6);  // of 60; about 53 without grouping
  EXPECT_NE(rows, epoch_rows(loader, 2));
}

TEST(Loader, GroupingFollowsTheReferenceOnAKnownOrder) {
  // 8 rows, batches of 1: mega-batches of min(8 / 4, 50) = 2. The longest row, 7, changes places with the first of its order.
  const TokenizedDataset data = rows_of({1, 2, 5, 3, 4, 4, 2, 9});
  const Loader loader(data, {.batch_size = 1, .shuffle = false, .group_by_length = true});
  EXPECT_THAT(epoch_rows(loader, 0), ElementsAre(7, 0, 2, 3, 4, 5, 1, 6));
}

TEST(Loader, TheLastBatchCanBeDropped) {
  const TokenizedDataset data = random_rows(25);
  const Loader loader(data, {.batch_size = 10, .drop_last = true});
  EXPECT_EQ(loader.batches_per_epoch(), 2);
  EXPECT_EQ(epoch_rows(loader, 0).size(), 20U);
  EXPECT_THROW(Loader(data, {.batch_size = 26, .drop_last = true}), Error);
}

TEST(Loader, RanksTogetherSeeWhatOneRankSees) {
  const TokenizedDataset data = random_rows(203);
  for (const bool grouped : {false, true}) {
    const Loader whole(data, {.batch_size = 24, .group_by_length = grouped});
    for (int64_t i = 0; i < whole.batches_per_epoch(); ++i) {
      Rows together;
      for (int rank = 0; rank < 3; ++rank) {
        const Loader part(data, {.batch_size = 8, .group_by_length = grouped, .rank = rank, .world_size = 3});
        ASSERT_EQ(part.batches_per_epoch(), whole.batches_per_epoch());
        const Batch batch = part.batch(2, i);
        EXPECT_LE(batch.rows.size(), 8U);
        together.insert(together.end(), batch.rows.begin(), batch.rows.end());
      }
      EXPECT_EQ(sorted(together), sorted(whole.batch(2, i).rows));
    }
  }
  // 203 = 8 * 24 + 11; with 16 ranks of 2 the last batch has 11 rows for 16 ranks.
  const Loader late(data, {.batch_size = 2, .rank = 15, .world_size = 16});
  EXPECT_TRUE(late.batch(0, late.batches_per_epoch() - 1).rows.empty());
}

TEST(Loader, TokensCanLimitABatch) {
  const TokenizedDataset data = rows_of({4, 4, 4, 20, 1, 1, 1, 1, 1});
  const Loader loader(data, {.batch_size = 4, .shuffle = false, .max_tokens = 9});
  std::vector<Rows> batches;
  for (int64_t i = 0; i < loader.batches_per_epoch(); ++i) batches.push_back(loader.batch(5, i).rows);
  EXPECT_THAT(batches, ElementsAre(Rows{0, 1}, Rows{2}, Rows{3}, Rows{4, 5, 6, 7}, Rows{8}));
}

TEST(Loader, RefusesWhatCannotBe) {
  const TokenizedDataset data = random_rows(10), none;
  EXPECT_THROW(Loader(none, {}), Error);
  EXPECT_THROW(Loader(data, {.batch_size = 0}), Error);
  EXPECT_THROW(Loader(data, {.rank = 2, .world_size = 2}), Error);
  EXPECT_THROW(Loader(data, {.rank = -1}), Error);
  EXPECT_THROW(Loader(data, {.max_tokens = 100}), Error);
  const Loader loader(data, {.batch_size = 4});
  EXPECT_THROW((void)loader.batch(0, 3), Error);
  EXPECT_THROW((void)loader.batch(0, -1), Error);
  EXPECT_THROW((void)loader.batch(-1, 0), Error);
}

TEST(Loader, ManyThreadsMayAskAtOnce) {
  const TokenizedDataset data = random_rows(300);
  const Loader shared(data, {.batch_size = 8}), alone(data, {.batch_size = 8});
  std::vector<Rows> rows(100);
  ThreadPool pool(4);
  pool.parallel_for(100, [&](int64_t i) { rows[static_cast<size_t>(i)] = shared.batch(i % 3, i % 37).rows; });
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(rows[static_cast<size_t>(i)], alone.batch(i % 3, i % 37).rows);
}

}  // namespace
}  // namespace muster::data
