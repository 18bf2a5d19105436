// One model behind HTTP: HttpServer + Api + Batcher + Model, started and stopped in the right order.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/http_server.h"
#include "serve/api.h"
#include "serve/batcher.h"
#include "serve/model.h"

namespace muster::serve {

struct ServerOptions {
  net::HttpServerOptions http = {};  // answer_timeout is taken from request_timeout
  BatcherOptions batcher = {};
  InvocationLimits limits = {};
  std::chrono::milliseconds request_timeout{60000};
  std::string version = {};
};

class InferenceServer {
 public:
  using LoadModel = std::function<std::unique_ptr<Model>()>;

  /// Binds the port, loads the model (meanwhile /ping is 503), runs a small batch as a warm-up, and is ready.
  /// Throws what binding, loading or the warm-up throws; nothing is left running then.
  InferenceServer(ServerOptions options, const LoadModel& load);
  ~InferenceServer();  // drain with no patience
  InferenceServer(const InferenceServer&) = delete;
  InferenceServer& operator=(const InferenceServer&) = delete;

  [[nodiscard]] uint16_t port() const;
  [[nodiscard]] const ModelInfo& model() const;

  /// /ping becomes 503, no new connections; requests that have begun are answered; then all stops. True when none was cut off.
  bool drain(std::chrono::milliseconds deadline);

  /// Returns when drain() has ended on another thread.
  void wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::serve
