#include "serve/batcher.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "core/log.h"

namespace muster::serve {
namespace {

/// A job on its way through: its texts may run in several batches.
struct Running {
  Job job;
  std::vector<ItemResult> results;
  size_t left;  // texts without a result
  Clock::time_point submitted;
};

/// One text that waits.
struct Item {
  std::shared_ptr<Running> owner;
  size_t index;
  [[nodiscard]] const std::vector<int32_t>& ids() const { return owner->job.texts[index]; }
  [[nodiscard]] int64_t tokens() const { return static_cast<int64_t>(ids().size()); }
  [[nodiscard]] ItemResult& result() const { return owner->results[index]; }
};

bool is_cancelled(const Job& job) { return job.cancelled && job.cancelled->load(std::memory_order_relaxed); }

}  // namespace

struct Batcher::State {
  State(BatcherOptions o, int64_t l, RunFunction r, Hooks h) : options(o), labels(l), run(std::move(r)), hooks(std::move(h)) {}

  const BatcherOptions options;
  const int64_t labels;
  const RunFunction run;
  const Hooks hooks;

  mutable std::mutex mutex;
  std::condition_variable wake;
  std::deque<Item> queue;  // guarded by mutex, like all down to `stopping`
  int64_t pending = 0;     // texts in the queue and in the running batch
  int64_t queued_tokens = 0;
  double tokens_per_second = 0;  // of the last batches, smoothed
  bool stopping = false;
  text::TokenBatch batch;  // of the batcher's thread
  std::thread thread;

  void work();
  std::vector<Item> take();
  void run_items(std::span<const Item> items);
  void run_apart(std::span<const Item> items, const Failure& failure);
  void release(std::span<const Item> items);
};

Batcher::Batcher(BatcherOptions options, int64_t labels, RunFunction run, Hooks hooks)
    : state_(std::make_unique<State>(options, labels, std::move(run), std::move(hooks))) {
  if (options.max_batch_tokens < 1 || options.max_batch_requests < 1 || options.max_concurrent_requests < 1)
    throw Error(ErrorKind::usage, "max_batch_tokens, max_batch_requests and max_concurrent_requests are at least 1 (got {}, {}, {})",
                options.max_batch_tokens, options.max_batch_requests, options.max_concurrent_requests);
  state_->thread = std::thread([this] { state_->work(); });
}
Batcher::~Batcher() { stop(); }

void Batcher::submit(Job job) {
  const BatcherOptions& options = state_->options;
  const auto count = static_cast<int64_t>(job.texts.size());
  if (count == 0) throw Error(ErrorKind::invalid_argument, "a request needs at least one text");
  if (count > options.max_concurrent_requests)
    throw Error(ErrorKind::too_large, "{} texts in one request: the queue takes {}", count, options.max_concurrent_requests);
  int64_t tokens = 0;
  for (const auto& ids : job.texts) {
    const auto size = static_cast<int64_t>(ids.size());
    if (size == 0) throw Error(ErrorKind::invalid_argument, "a text without tokens");
    if (size > options.max_batch_tokens)
      throw Error(ErrorKind::too_large, "a text of {} tokens: a batch takes {}", size, options.max_batch_tokens);
    tokens += size;
  }
  const auto running = std::make_shared<Running>();
  running->results.resize(job.texts.size());
  running->left = job.texts.size();
  running->submitted = state_->hooks.now();
  running->job = std::move(job);
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->stopping) throw Error(ErrorKind::cancelled, "the server is shutting down");
    if (state_->pending + count > options.max_concurrent_requests)
      throw Error(ErrorKind::overloaded, "{} texts are waiting and the queue takes {}: try again later", state_->pending,
                  options.max_concurrent_requests);
    for (size_t i = 0; i < running->results.size(); ++i) state_->queue.push_back({running, i});
    state_->pending += count;
    state_->queued_tokens += tokens;
  }
  state_->wake.notify_one();
}

int64_t Batcher::pending_texts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->pending;
}
int64_t Batcher::queued_tokens() const {
  const std::lock_guard lock(state_->mutex);
  return state_->queued_tokens;
}

std::chrono::seconds Batcher::retry_after() const {
  const std::lock_guard lock(state_->mutex);
  const double speed = state_->tokens_per_second;
  const double seconds = speed > 0 ? std::ceil(static_cast<double>(state_->queued_tokens) / speed) : 1;
  return std::chrono::seconds(static_cast<int>(std::clamp(seconds, 1.0, 30.0)));
}

void Batcher::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_one();
  if (state_->thread.joinable()) state_->thread.join();
}

void Batcher::State::work() {
  for (;;) {
    {
      std::unique_lock lock(mutex);
      wake.wait(lock, [&] { return stopping || !queue.empty(); });
      if (queue.empty()) return;
    }
    const std::vector<Item> items = take();
    if (items.empty()) continue;
    run_items(items);
    release(items);
  }
}

/// The longest run of waiting texts that fits. Texts nobody waits for are answered at once and take no room.
std::vector<Item> Batcher::State::take() {
  std::vector<Item> items, dropped;
  {
    const std::lock_guard lock(mutex);
    const auto now = hooks.now();
    int64_t tokens = 0;
    while (!queue.empty() && static_cast<int64_t>(items.size()) < options.max_batch_requests) {
      Item& item = queue.front();
      const Job& job = item.owner->job;
      if (is_cancelled(job)) {
        item.result().failure = Failure{ErrorKind::cancelled, "the client left before its turn"};
      } else if (now >= job.deadline) {
        const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - item.owner->submitted);
        item.result().failure =
            Failure{ErrorKind::timeout, fmt::format("waited {} ms without its turn: the server has too much to do", waited.count())};
      } else if (tokens + item.tokens() > options.max_batch_tokens) {
        break;
      }
      item.result().queue = now - item.owner->submitted;
      item.result().tokens = item.tokens();
      queued_tokens -= item.tokens();
      if (item.result().failure) {
        dropped.push_back(std::move(item));
      } else {
        tokens += item.tokens();
        items.push_back(std::move(item));
      }
      queue.pop_front();
    }
  }
  release(dropped);
  return items;
}

/// Runs one batch and writes the results of its items.
void Batcher::State::run_items(std::span<const Item> items) {
  batch.clear();
  for (const Item& item : items) batch.append(item.ids());
  const auto start = hooks.now();
  std::vector<float> logits;
  std::optional<Failure> failure;
  try {
    logits = run(batch);
    const auto expected = items.size() * static_cast<size_t>(labels);
    if (logits.size() != expected)
      failure = Failure{ErrorKind::internal, fmt::format("internal error: the model gave {} numbers for {} texts of {} labels",
                                                         logits.size(), items.size(), labels)};
  } catch (const Error& e) {
    failure = Failure{e.kind(), e.what()};
  } catch (const std::exception& e) {
    failure = Failure{ErrorKind::internal, fmt::format("internal error: {}", e.what())};
  }
  const auto took = hooks.now() - start;
  if (hooks.on_batch) hooks.on_batch({batch.sequences(), batch.tokens(), took, failure.has_value()});
  if (failure) return run_apart(items, *failure);

  for (size_t i = 0; i < items.size(); ++i) {
    ItemResult& result = items[i].result();
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * static_cast<size_t>(labels));
    result.logits.assign(row, row + labels);
    result.inference = took;
    if (!std::all_of(result.logits.begin(), result.logits.end(), [](float x) { return std::isfinite(x); }))
      result.failure = Failure{ErrorKind::internal, "the model gave a number that is not finite for this text: its weights may be broken"};
  }
  const std::lock_guard lock(mutex);
  const double seconds = std::chrono::duration<double>(took).count();
  if (seconds > 0) {
    const double speed = static_cast<double>(batch.tokens()) / seconds;
    tokens_per_second = tokens_per_second > 0 ? 0.8 * tokens_per_second + 0.2 * speed : speed;
  }
}

/// After a batch that failed: each request of it alone, and the texts of a request that fails alone one by one.
void Batcher::State::run_apart(std::span<const Item> items, const Failure& failure) {
  if (items.size() == 1) {
    items[0].result().failure = failure;
    log_warning("a text of {} tokens failed: {}", items[0].tokens(), failure.message);
    return;
  }
  const bool one_request = std::all_of(items.begin(), items.end(), [&](const Item& item) { return item.owner == items[0].owner; });
  while (!items.empty()) {
    size_t count = 1;
    while (!one_request && count < items.size() && items[count].owner == items[0].owner) ++count;
    run_items(items.first(count));
    items = items.subspan(count);
  }
}

/// Gives up the places of these texts and answers the jobs that are complete.
void Batcher::State::release(std::span<const Item> items) {
  {
    const std::lock_guard lock(mutex);
    pending -= static_cast<int64_t>(items.size());
  }
  for (const Item& item : items)
    if (--item.owner->left == 0) item.owner->job.done(std::move(item.owner->results));
}

}  // namespace muster::serve
