// A socket that says exactly the bytes a test wants, to a server on this machine. Sends and receives end after 10 s.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster::net::test {

/// One parsed response.
struct Reply {
  int status = 0;  // 0: the connection ended before a whole response
  std::map<std::string, std::string> headers;
  std::string body;
};

class RawClient {
 public:
  explicit RawClient(uint16_t port);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// False when the server has closed its side.
  bool send(std::string_view bytes) const;
  /// Reads one response; `head` when it answers a HEAD request.
  Reply read(bool head = false);
  /// send + read.
  Reply ask(std::string_view bytes) {
    send(bytes);
    return read();
  }
  /// True when the server ends the connection (nothing but that arrives).
  bool at_end();
  void half_close() const;
  void close();

 private:
  bool more();
  int fd_ = -1;
  std::string buffer_;
};

}  // namespace muster::net::test
