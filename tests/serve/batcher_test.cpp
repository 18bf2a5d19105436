// The queue with a fake engine (one logit: the sum of the ids) and a clock that only the test moves.
#include "serve/batcher.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <future>
#include <mutex>
#include <numeric>
#include <thread>

namespace muster::serve {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

/// Records batches; holds the engine until told to go on.
class Rig {
 public:
  explicit Rig(BatcherOptions options = {}, bool held = true) : held_(held) {
    Batcher::Hooks hooks;
    hooks.now = [this] { return Clock::time_point(std::chrono::milliseconds(now_ms.load())); };
    hooks.on_batch = [this](const BatchReport& report) { reports.push_back(report); };
    batcher.emplace(options, 1, [this](const text::TokenBatch& batch) { return run(batch); }, hooks);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;
  ~Rig() { open(); }

  std::future<std::vector<ItemResult>> submit(std::vector<std::vector<int32_t>> texts, net::CancelFlag cancelled = {},
                                              Clock::time_point deadline = Clock::time_point::max()) {
    auto promise = std::make_shared<std::promise<std::vector<ItemResult>>>();
    auto future = promise->get_future();
    batcher->submit(
        {std::move(texts), std::move(cancelled), deadline, [promise](std::vector<ItemResult> r) { promise->set_value(std::move(r)); }});
    return future;
  }
  /// Occupies the engine with one text, so that what follows piles up.
  std::future<std::vector<ItemResult>> block() {
    auto future = submit({{1}});
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_; });
    return future;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }

  std::atomic<int64_t> now_ms{1000};
  std::function<void(const text::TokenBatch&)> on_run = [](const text::TokenBatch&) {};
  std::vector<std::vector<int32_t>> batches;  // lengths of the texts of each
  std::vector<BatchReport> reports;
  std::optional<Batcher> batcher;  // last: its thread uses the others

 private:
  std::vector<float> run(const text::TokenBatch& batch) {
    std::unique_lock lock(mutex_);
    running_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held_; });
    std::vector<int32_t> lengths;
    std::vector<float> out;
    for (size_t i = 0; i + 1 < batch.cu_seqlens.size(); ++i) {
      const auto begin = batch.ids.begin() + batch.cu_seqlens[i], end = batch.ids.begin() + batch.cu_seqlens[i + 1];
      lengths.push_back(static_cast<int32_t>(end - begin));
      out.push_back(static_cast<float>(std::accumulate(begin, end, 0)));
    }
    batches.push_back(lengths);
    on_run(batch);
    return out;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_, running_ = false;
};

std::vector<int32_t> text_of(size_t length, int32_t id = 1) { return std::vector<int32_t>(length, id); }

template <typename F>
ErrorKind kind_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "did not throw";
  return ErrorKind::usage;
}

TEST(Batcher, LoneRequestRunsAtOnce) {
  Rig rig({}, false);
  const auto results = rig.submit({{1, 2, 3}}).get();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_THAT(results[0].logits, ElementsAre(6));
  EXPECT_EQ(results[0].tokens, 3);
  EXPECT_FALSE(results[0].failure);
}

TEST(Batcher, WhatWaitsBecomesOneBatchInOrder) {
  Rig rig;
  auto first = rig.block();
  auto a = rig.submit({{1, 1}}), b = rig.submit({{2}, {3}}), c = rig.submit({{4, 4, 4}});
  EXPECT_EQ(rig.batcher->pending_texts(), 5);
  EXPECT_EQ(rig.batcher->queued_tokens(), 7);
  rig.open();
  EXPECT_THAT(a.get()[0].logits, ElementsAre(2));
  const auto both = b.get();
  EXPECT_THAT(both[0].logits, ElementsAre(2));
  EXPECT_THAT(both[1].logits, ElementsAre(3));
  EXPECT_THAT(c.get()[0].logits, ElementsAre(12));
  rig.batcher->stop();
  EXPECT_EQ(rig.batcher->pending_texts(), 0);
  EXPECT_THAT(rig.batches, ElementsAre(ElementsAre(1), ElementsAre(2, 1, 1, 3)));
  EXPECT_EQ(rig.reports[1].sequences, 4);
  EXPECT_EQ(rig.reports[1].tokens, 7);
}

TEST(Batcher, BudgetsCutBatchesAndOrderIsKept) {
  Rig rig({.max_batch_tokens = 10, .max_batch_requests = 3});
  auto first = rig.block();
  std::vector<std::future<std::vector<ItemResult>>> all;
  all.push_back(rig.submit({text_of(6), text_of(4), text_of(1)}));  // 10 tokens fit exactly, 1 more does not
  all.push_back(rig.submit({text_of(1), text_of(1)}));              // 3 texts are a batch whatever their tokens
  all.push_back(rig.submit({text_of(9)}));
  all.push_back(rig.submit({text_of(10), text_of(2), text_of(1)}));
  rig.open();
  for (auto& f : all)
    for (const auto& r : f.get()) EXPECT_THAT(r.logits, ElementsAre(static_cast<float>(r.tokens)));
  rig.batcher->stop();
  EXPECT_THAT(rig.batches,
              ElementsAre(ElementsAre(1), ElementsAre(6, 4), ElementsAre(1, 1, 1), ElementsAre(9), ElementsAre(10), ElementsAre(2, 1)));
}

TEST(Batcher, FullQueueRefusesWholeRequests) {
  Rig rig({.max_concurrent_requests = 4});
  auto first = rig.block();
  auto a = rig.submit({{1}, {2}});
  EXPECT_EQ(kind_of([&] { rig.submit({{3}, {4}}); }), ErrorKind::overloaded);
  auto b = rig.submit({{5}});
  EXPECT_EQ(kind_of([&] { rig.submit({{6}}); }), ErrorKind::overloaded);
  EXPECT_EQ(rig.batcher->pending_texts(), 4);
  rig.open();
  EXPECT_THAT(a.get()[1].logits, ElementsAre(2));
  EXPECT_THAT(b.get()[0].logits, ElementsAre(5));
  first.get();
  for (int i = 0; i < 2000 && rig.batcher->pending_texts() > 0; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_THAT(rig.submit({{7}, {8}, {9}, {10}}).get()[3].logits, ElementsAre(10));  // room again
}

TEST(Batcher, BadRequestsAreRefusedAtSubmit) {
  Rig rig({.max_batch_tokens = 4, .max_concurrent_requests = 2}, false);
  EXPECT_EQ(kind_of([&] { rig.submit({}); }), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_of([&] { rig.submit({{1}, {}}); }), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_of([&] { rig.submit({text_of(5)}); }), ErrorKind::too_large);
  EXPECT_EQ(kind_of([&] { rig.submit({{1}, {1}, {1}}); }), ErrorKind::too_large);
  EXPECT_EQ(kind_of([&] { const Batcher none({.max_batch_tokens = 0}, 1, {}); }), ErrorKind::usage);
}

TEST(Batcher, CancelledRequestsNeverRun) {
  Rig rig;
  auto first = rig.block();
  const auto flag = std::make_shared<std::atomic<bool>>(false);
  auto gone = rig.submit({{2}, {3}}, flag), stays = rig.submit({{4}});
  flag->store(true);
  rig.open();
  EXPECT_EQ(gone.get()[1].failure.value().kind, ErrorKind::cancelled);
  EXPECT_THAT(stays.get()[0].logits, ElementsAre(4));
  rig.batcher->stop();
  EXPECT_THAT(rig.batches, ElementsAre(ElementsAre(1), ElementsAre(1)));
}

TEST(Batcher, DeadlineAndTimings) {
  Rig rig;
  auto first = rig.block();
  auto late = rig.submit({{2}}, {}, Clock::time_point(1050ms)), in_time = rig.submit({{3}}, {}, Clock::time_point(1051ms));
  rig.now_ms = 1050;
  rig.on_run = [&](const text::TokenBatch& batch) {
    if (batch.ids[0] == 3) rig.now_ms += 7;
  };
  rig.open();
  const auto failed = late.get();
  EXPECT_EQ(failed[0].failure.value().kind, ErrorKind::timeout);
  EXPECT_THAT(failed[0].failure->message, HasSubstr("50 ms"));
  const auto results = in_time.get();
  EXPECT_FALSE(results[0].failure);
  EXPECT_EQ(results[0].queue, 50ms);
  EXPECT_EQ(results[0].inference, 7ms);
}

TEST(Batcher, OneBrokenRequestFailsAlone) {
  Rig rig;
  auto first = rig.block();
  rig.on_run = [](const text::TokenBatch& batch) {
    for (const int32_t id : batch.ids)
      if (id == 13) throw Error(ErrorKind::corrupt, "unlucky");
  };
  auto a = rig.submit({{1}}), b = rig.submit({{2}, {13}, {3}}), c = rig.submit({{4}});
  rig.open();
  EXPECT_THAT(a.get()[0].logits, ElementsAre(1));
  const auto mixed = b.get();
  EXPECT_THAT(mixed[0].logits, ElementsAre(2));
  EXPECT_EQ(mixed[1].failure.value().kind, ErrorKind::corrupt);
  EXPECT_EQ(mixed[1].failure->message, "unlucky");
  EXPECT_THAT(mixed[2].logits, ElementsAre(3));
  EXPECT_THAT(c.get()[0].logits, ElementsAre(4));
  rig.batcher->stop();
  EXPECT_EQ(std::count_if(rig.reports.begin(), rig.reports.end(), [](const BatchReport& r) { return r.failed; }), 3);
}

TEST(Batcher, ForeignExceptionsWrongSizesAndNanAreFailures) {
  std::atomic<int> mode{0};
  Batcher batcher({}, 2, [&](const text::TokenBatch& batch) -> std::vector<float> {
    if (mode == 0) throw std::bad_alloc();
    if (mode == 1) return {1.0F};
    std::vector<float> out(static_cast<size_t>(batch.sequences()) * 2, 1.0F);
    out[1] = NAN;
    return out;
  });
  const auto ask = [&] {
    std::promise<std::vector<ItemResult>> promise;
    batcher.submit({.texts = {{1}, {2}}, .done = [&](std::vector<ItemResult> r) { promise.set_value(std::move(r)); }});
    return promise.get_future().get();
  };
  EXPECT_THAT(ask()[0].failure.value().message, HasSubstr("bad_alloc"));
  mode = 1;
  EXPECT_EQ(ask()[1].failure.value().kind, ErrorKind::internal);
  mode = 2;
  const auto results = ask();
  EXPECT_THAT(results[0].failure.value().message, HasSubstr("not finite"));
  EXPECT_FALSE(results[1].failure);
}

TEST(Batcher, StopFinishesWhatWaits) {
  Rig rig({.max_batch_requests = 1});
  auto first = rig.block();
  auto a = rig.submit({{2}, {3}});
  auto stopped = std::async(std::launch::async, [&] { rig.batcher->stop(); });
  while (kind_of([&] {
           if (rig.batcher->pending_texts() < 100) rig.submit({{9}});
           std::this_thread::sleep_for(1ms);
           throw Error(ErrorKind::overloaded, "not yet");
         }) != ErrorKind::cancelled) {
  }
  rig.open();
  stopped.get();
  EXPECT_THAT(a.get()[1].logits, ElementsAre(3));
  rig.batcher->stop();  // again: nothing
}

TEST(Batcher, RetryAfterFollowsTheSpeed) {
  Rig rig({.max_batch_tokens = 100, .max_concurrent_requests = 100});
  EXPECT_EQ(rig.batcher->retry_after(), 1s);
  std::promise<void> entered, go;
  int run = 0;  // of the batcher's thread
  rig.on_run = [&](const text::TokenBatch& batch) {
    if (++run == 1) rig.now_ms += batch.tokens() * 100;  // 10 tokens a second
    if (run != 2) return;
    entered.set_value();
    go.get_future().wait();
  };
  auto first = rig.block();
  rig.open();
  first.get();
  auto running = rig.submit({{1}});
  entered.get_future().wait();
  auto waiting = rig.submit({text_of(42)});
  EXPECT_EQ(rig.batcher->retry_after(), 5s);
  auto more = rig.submit({text_of(100), text_of(100), text_of(100)});
  EXPECT_EQ(rig.batcher->retry_after(), 30s);
  go.set_value();
  more.get();
}

TEST(Batcher, ManyThreads) {
  Rig rig({.max_batch_tokens = 64, .max_concurrent_requests = 100000}, false);
  std::vector<std::jthread> threads;
  std::atomic<int> wrong{0}, answered{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const int32_t id = t * 1000 + i;
        const auto results = rig.submit({{id}, {id, id}}).get();
        if (results[0].logits[0] != static_cast<float>(id) || results[1].logits[0] != static_cast<float>(2 * id)) ++wrong;
        ++answered;
      }
    });
  threads.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(answered, 1600);
  EXPECT_EQ(rig.batcher->pending_texts(), 0);
}

}  // namespace
}  // namespace muster::serve
