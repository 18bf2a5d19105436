// The routes: what each path and method does, and every error as JSON. SageMaker's container protocol is /ping and /invocations.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "net/http_server.h"
#include "serve/batcher.h"
#include "serve/invocation.h"
#include "serve/lane.h"
#include "serve/metrics.h"
#include "serve/model.h"

namespace muster::serve {

/// A server passes through these once, in order.
enum class Health { loading, ready, draining };

struct ApiOptions {
  InvocationLimits limits = {};
  std::chrono::milliseconds request_timeout{60000};  // for a text to begin running
  std::string version = {};                          // of muster, for GET /
  size_t max_body_bytes = 0;                         // of the HTTP server, for GET /
  int64_t max_batch_tokens = 0, max_concurrent_requests = 0;
};

/// What answers. All are there from Health::ready on.
struct Backend {
  const Model* model = nullptr;
  Batcher* batcher = nullptr;
  Lane* lane = nullptr;  // where large bodies are read
};

/// GET  /             name, version, model, labels and limits
/// GET  /ping         200 {"status":"ready"}, else 503 with a Retry-After; /health is the same
/// POST /invocations  see invocation.h and answer.h
/// GET  /metrics      Prometheus text
/// HEAD wherever GET. Another method is 405 with Allow, another path 404 with the list of these.
/// Answers of /invocations carry x-muster-tokens, x-muster-queue-ms, x-muster-inference-ms, x-muster-total-ms, and
/// x-muster-truncated: N when N texts were cut to the limit. A request with a text that failed has that text's error as its answer.
class Api {
 public:
  Api(ApiOptions options, Metrics& metrics) : options_(std::move(options)), metrics_(metrics) {}

  /// The backend must live until no request is left.
  void set_ready(Backend backend);
  void set_draining() { health_ = Health::draining; }
  void set_connection_counter(std::function<int()> connections) { connections_ = std::move(connections); }

  void handle(net::HttpRequest request, const net::Responder& responder);

 private:
  struct Call;
  void invoke(const net::HttpRequest& request, const std::shared_ptr<Call>& call);
  void finish(Call& call, std::vector<ItemResult> results);
  void answer(Call& call, net::HttpResponse response);
  void fail(Call& call, ErrorKind kind, std::string_view message);
  [[nodiscard]] net::HttpResponse about() const;
  [[nodiscard]] net::HttpResponse ping() const;
  [[nodiscard]] net::HttpResponse metrics() const;
  [[nodiscard]] bool ready() const { return health_ == Health::ready; }

  const ApiOptions options_;
  Metrics& metrics_;
  Backend backend_;
  std::function<int()> connections_;
  std::atomic<Health> health_{Health::loading};
};

}  // namespace muster::serve
