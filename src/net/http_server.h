// An HTTP/1.0 and 1.1 server: a few I/O threads for any number of keep-alive connections, answers given later from any thread.
// No routes and no meaning of bodies here: that is serve/.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/http.h"

namespace muster::net {

struct HttpServerOptions {
  std::string host = "127.0.0.1";                   // an address of this machine; "0.0.0.0" and "::" are all of them
  uint16_t port = 0;                                // 0: any free one, see HttpServer::port()
  int io_threads = 2;                               // these also run the handler
  int max_connections = 1024;                       // one more is answered 503 and closed
  size_t max_body_bytes = 6291456;                  // the payload limit of a SageMaker endpoint; more: 413
  size_t max_total_body_bytes = size_t{512} << 20;  // of all connections together; a request that passes it is answered 503
  size_t max_header_bytes = 16384;  // request line and fields together; more: 431, or 414 when the request line alone is longer
  size_t max_target_bytes = 8192;   // more: 414
  std::chrono::milliseconds read_timeout{60000};    // from the first byte of a request to its last; then 408
  std::chrono::milliseconds idle_timeout{75000};    // between requests of a connection; then it is closed
  std::chrono::milliseconds write_timeout{60000};   // for a client to take its answer; then the connection is closed
  std::chrono::milliseconds answer_timeout{60000};  // for the handler to answer; then 504 and the request is cancelled
};

/// The way back to the client that sent a request. Copies are the same one answer.
class Responder {
 public:
  class Slot;
  explicit Responder(std::shared_ptr<Slot> slot) : slot_(std::move(slot)) {}

  /// Answers; from any thread, once: later calls are ignored. When the last copy goes without an answer the client gets a 500.
  /// Nothing happens when the client or the server has gone meanwhile.
  void send(HttpResponse response) const;

 private:
  std::shared_ptr<Slot> slot_;
};

/// Called on an I/O thread, for several connections at a time. What it throws is answered as a 500 with the message.
using HttpHandler = std::function<void(HttpRequest, Responder)>;

/// Requests of one connection are handled one at a time, so pipelined ones are answered in order. HEAD is handled as the handler
/// pleases and sent without body. Malformed input never reaches the handler: 400, 408, 413, 414, 417, 431, 505 with a JSON body.
/// A client that closes (also half-closes) its connection while its request is handled sets the request's `cancelled` flag.
class HttpServer {
 public:
  /// Binds and serves at once. Throws Error(io) when the address is taken or not this machine's.
  HttpServer(HttpServerOptions options, HttpHandler handler);
  ~HttpServer();  // drain with no patience
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] uint16_t port() const;
  [[nodiscard]] int connections() const;

  /// Stops accepting, closes idle connections, lets requests that have begun be answered, then stops. Connections left at the
  /// deadline are cut. Returns true when none was. A second call returns at once.
  bool drain(std::chrono::milliseconds deadline);

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace muster::net
