#include "serve/server.h"

#include <condition_variable>
#include <mutex>
#include <optional>

#include "core/error.h"
#include "core/log.h"

namespace muster::serve {
namespace {

/// A few texts through tokenizer and engine, so that the first request finds memory touched and code loaded, and a model that does not
/// run is found out before anybody asks.
void warm_up(Model& model) {
  constexpr int kTexts = 8;
  const TokenizedText text = model.tokenize("The quick brown fox jumps over the lazy dog.", {});
  text::TokenBatch batch;
  for (int i = 0; i < kTexts; ++i) batch.append(text.ids);
  const size_t numbers = model.run(batch).size();
  if (numbers != kTexts * model.info().labels.size())
    throw Error(ErrorKind::internal, "the model gave {} numbers for {} texts of {} labels", numbers, kTexts, model.info().labels.size());
}

ApiOptions api_options(const ServerOptions& options) {
  return {.limits = options.limits,
          .request_timeout = options.request_timeout,
          .version = options.version,
          .max_body_bytes = options.http.max_body_bytes,
          .max_batch_tokens = options.batcher.max_batch_tokens,
          .max_concurrent_requests = options.batcher.max_concurrent_requests};
}

}  // namespace

struct InferenceServer::State {
  explicit State(const ServerOptions& options) : api(api_options(options), metrics) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { drain(std::chrono::milliseconds(0)); }

  /// From the outside in: no more requests, then nothing that makes jobs, then nothing that runs them.
  bool drain(std::chrono::milliseconds deadline) {
    api.set_draining();
    const bool all_answered = !http || http->drain(deadline);
    if (lane) lane->stop();
    if (batcher) batcher->stop();
    const std::lock_guard lock(mutex);
    stopped = true;
    changed.notify_all();
    return all_answered;
  }

  Metrics metrics;
  Api api;
  std::unique_ptr<Model> model;
  std::optional<Batcher> batcher;
  std::optional<Lane> lane;
  std::optional<net::HttpServer> http;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopped = false;
};

InferenceServer::InferenceServer(ServerOptions options, const LoadModel& load) : state_(std::make_unique<State>(options)) {
  options.http.answer_timeout = options.request_timeout;
  State& s = *state_;
  s.http.emplace(options.http,
                 [&s](net::HttpRequest request, const net::Responder& responder) { s.api.handle(std::move(request), responder); });
  s.model = load();
  if (s.model->info().max_length > options.batcher.max_batch_tokens)
    throw Error(ErrorKind::usage, "max_batch_tokens is {}: a text of this model can have {}", options.batcher.max_batch_tokens,
                s.model->info().max_length);
  warm_up(*s.model);
  Batcher::Hooks hooks;
  hooks.on_batch = [&s](const BatchReport& report) {
    s.metrics.batch_texts.add(static_cast<double>(report.sequences));
    s.metrics.batch_tokens.add(static_cast<double>(report.tokens));
    if (report.failed) ++s.metrics.batches_failed;
  };
  s.batcher.emplace(
      options.batcher, static_cast<int64_t>(s.model->info().labels.size()),
      [&s](const text::TokenBatch& batch) { return s.model->run(batch); }, hooks);
  s.lane.emplace();
  s.api.set_ready({.model = s.model.get(), .batcher = &*s.batcher, .lane = &*s.lane});
  log_debug("ready on port {}", s.http->port());
}
InferenceServer::~InferenceServer() = default;

uint16_t InferenceServer::port() const { return state_->http->port(); }
const ModelInfo& InferenceServer::model() const { return state_->model->info(); }
bool InferenceServer::drain(std::chrono::milliseconds deadline) { return state_->drain(deadline); }

void InferenceServer::wait() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->stopped; });
}

}  // namespace muster::serve
