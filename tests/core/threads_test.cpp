// The pool: every chunk once, exceptions, nesting, several callers. Run under the thread sanitizer too.
#include "core/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/error.h"

namespace muster {
namespace {

using ::testing::Each;

TEST(ThreadPool, RunsEachChunkOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t chunks : {0, 1, 2, 100}) {
      std::vector<int> runs(static_cast<size_t>(chunks), 0);
      pool.parallel_for(chunks, [&](int64_t c) { ++runs[static_cast<size_t>(c)]; });
      EXPECT_THAT(runs, Each(1));
    }
  }
}

TEST(ThreadPool, NoThreadsMeansOne) { EXPECT_EQ(ThreadPool(0).threads(), 1); }

TEST(ThreadPool, TooManyThreadsIsAnError) {
  pthread_attr_t usual, enormous;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&enormous), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&enormous, size_t{1} << 50), 0);  // no address space holds such a stack
  ASSERT_EQ(pthread_setattr_default_np(&enormous), 0);
  EXPECT_THROW(ThreadPool(4), Error);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_EQ(ThreadPool(4).threads(), 4);
}

TEST(ThreadPool, ManyShortLoopsInARow) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  for (int loop = 0; loop < 300; ++loop) pool.parallel_for(4, [&](int64_t c) { sum += c; });
  EXPECT_EQ(sum, 300 * 6);
}

/// Long enough pauses that the workers sleep in between.
TEST(ThreadPool, WakesFromSleep) {
  ThreadPool pool(3);
  std::atomic<int> runs{0};
  for (int loop = 0; loop < 5; ++loop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pool.parallel_for(8, [&](int64_t) { ++runs; });
  }
  EXPECT_EQ(runs, 40);
}

TEST(ThreadPool, IndicesOfThreadsSelectScratch) {
  ThreadPool pool(4);
  std::vector<int64_t> scratch(4, 0);  // each written by its thread alone: the sanitizer would see a clash
  pool.parallel_for(1000, [&](int64_t c, int thread) {
    ASSERT_TRUE(thread >= 0 && thread < 4);
    scratch[static_cast<size_t>(thread)] += c;
  });
  EXPECT_EQ(scratch[0] + scratch[1] + scratch[2] + scratch[3], 999 * 1000 / 2);
}

TEST(ThreadPool, RethrowsTheFirstExceptionAndGoesOnLiving) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::atomic<int> runs{0};
    EXPECT_THROW(pool.parallel_for(100,
                                   [&](int64_t c) {
                                     ++runs;
                                     if (c == 10) throw std::runtime_error("chunk 10");
                                   }),
                 std::runtime_error);
    EXPECT_LE(runs, 100);
    runs = 0;
    pool.parallel_for(10, [&](int64_t) { ++runs; });
    EXPECT_EQ(runs, 10);
  }
}

TEST(ThreadPool, ALoopInsideALoopRunsOnItsThread) {
  ThreadPool pool(3);
  std::atomic<int> runs{0};
  pool.parallel_for(6, [&](int64_t, int outer) {
    pool.parallel_for(5, [&](int64_t, int inner) {
      EXPECT_EQ(inner, outer);
      ++runs;
    });
  });
  EXPECT_EQ(runs, 30);
}

TEST(ThreadPool, SeveralCallersTakeTurns) {
  ThreadPool pool(3);
  std::atomic<int> runs{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      for (int loop = 0; loop < 50; ++loop) pool.parallel_for(7, [&](int64_t) { ++runs; });
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(runs, 4 * 50 * 7);
}

}  // namespace
}  // namespace muster
