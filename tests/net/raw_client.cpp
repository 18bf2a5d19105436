#include "net/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace muster::net::test {

RawClient::RawClient(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval limit{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) throw std::runtime_error("cannot connect");
}
RawClient::~RawClient() { close(); }

void RawClient::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}
void RawClient::half_close() const { ::shutdown(fd_, SHUT_WR); }

bool RawClient::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool RawClient::more() {
  std::array<char, 4096> chunk;  // NOLINT
  const ssize_t n = ::recv(fd_, chunk.data(), chunk.size(), 0);
  if (n <= 0) return false;
  buffer_.append(chunk.data(), static_cast<size_t>(n));
  return true;
}

bool RawClient::at_end() { return buffer_.empty() && !more(); }

Reply RawClient::read(bool head) {
  Reply reply;
  size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos)
    if (!more()) return reply;
  std::string_view lines = std::string_view(buffer_).substr(0, end + 2);
  const int status = std::stoi(std::string(lines.substr(9, 3)));
  lines.remove_prefix(lines.find("\r\n") + 2);
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find("\r\n"));
    reply.headers[std::string(line.substr(0, line.find(':')))] = line.substr(line.find(':') + 2);
    lines.remove_prefix(line.size() + 2);
  }
  buffer_.erase(0, end + 4);
  const size_t size = head || status == 100 || !reply.headers.contains("Content-Length") ? 0 : std::stoul(reply.headers["Content-Length"]);
  while (buffer_.size() < size)
    if (!more()) return {};
  reply.body = buffer_.substr(0, size);
  buffer_.erase(0, size);
  reply.status = status;
  return reply;
}

}  // namespace muster::net::test
