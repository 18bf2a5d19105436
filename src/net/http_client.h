// Asking other servers over HTTP or HTTPS, one request at a time. No retries and no meaning of bodies here.
#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "net/http.h"

namespace muster::net {

struct HttpCall {
  std::string url;
  std::string method = "GET";
  Headers headers = {};
  std::string body = {};
  std::chrono::milliseconds connect_timeout{10000};
  std::chrono::milliseconds timeout{60000};  // for the whole exchange
  size_t max_reply_bytes = size_t{64} << 20;
};

struct HttpReply {
  int status = 0;
  Headers headers;
  std::string body;
};

/// Keeps its connection open between requests. Used by one thread at a time.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Any status is a reply. Throws, always naming the URL: Error(io) when there is no connection or it breaks, Error(timeout),
  /// Error(too_large) for a reply over max_reply_bytes, Error(usage) for a URL that is not http:// or https://.
  /// Proxies of the environment are used, but never for this machine's own addresses. Redirects are not followed.
  HttpReply request(const HttpCall& call);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One request on a connection of its own.
HttpReply http_request(const HttpCall& call);

}  // namespace muster::net
