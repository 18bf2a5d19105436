// What an HTTP message is to muster: headers, request, response. No sockets here (http_server.h, http_client.h).
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::net {

/// True when `a` and `b` are the same ASCII text, letter case apart (header names, media types).
bool same_word(std::string_view a, std::string_view b);

/// Header fields in the order they came; names compare without case.
class Headers {
 public:
  using Field = std::pair<std::string, std::string>;

  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  /// The value of the first field of that name; fields given more than once are not joined.
  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
  void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }

  [[nodiscard]] auto begin() const { return fields_.begin(); }
  [[nodiscard]] auto end() const { return fields_.end(); }
  [[nodiscard]] size_t size() const { return fields_.size(); }

 private:
  std::vector<Field> fields_;
};

/// Set by the server when nobody waits for the answer any more: the client left, or its time is over.
using CancelFlag = std::shared_ptr<const std::atomic<bool>>;

struct HttpRequest {
  std::string method;                        // as sent: "GET"
  std::string target;                        // as sent: "/a%20b?x=1"
  std::string path;                          // decoded, without the query: "/a b"
  std::map<std::string, std::string> query;  // decoded; the last of equal names wins
  Headers headers;
  std::string body;
  std::string remote;  // "127.0.0.1:40312"
  CancelFlag cancelled;

  [[nodiscard]] bool is_cancelled() const { return cancelled && cancelled->load(std::memory_order_relaxed); }
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  Headers headers = {};
};

/// {"error": message, "code": status} as the whole body: what every failure answered by muster looks like.
HttpResponse error_response(int status, std::string_view message);

/// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string json_quote(std::string_view text);

/// "Not Found" for 404; "" for a status that has no name here.
std::string_view reason_of(int status);

/// Splits a request target into path and query; %XX decoded, '+' is a space in the query, a broken escape stays as it is.
/// The absolute form ("http://host/path") loses its scheme and host, as RFC 9112 section 3.2.2 asks.
void split_target(std::string_view target, std::string& path, std::map<std::string, std::string>& query);

}  // namespace muster::net
