// Stopping: nobody who has begun a request loses its answer, nobody keeps the server up.
#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "net/http_server.h"
#include "net/raw_client.h"

namespace muster::net {
namespace {
using test::RawClient;
using test::Reply;
using namespace std::chrono_literals;

const std::string kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// Holds every request until `open` is called.
class Gate {
 public:
  void operator()(const HttpRequest& request, const Responder& responder) {
    const std::lock_guard lock(mutex_);
    held_.emplace_back(request, responder);
  }
  void wait_for(size_t count) {
    for (int i = 0; i < 1000 && size() < count; ++i) std::this_thread::sleep_for(5ms);
    ASSERT_EQ(size(), count);
  }
  void open() {
    const std::lock_guard lock(mutex_);
    for (const auto& [request, responder] : held_) responder.send({.body = "done"});
  }
  bool cancelled() {
    const std::lock_guard lock(mutex_);
    return held_.front().first.is_cancelled();
  }

 private:
  size_t size() {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  std::mutex mutex_;
  std::vector<std::pair<HttpRequest, Responder>> held_;
};

TEST(HttpDrain, RequestsInFlightAreAnsweredAndIdleConnectionsClosed) {
  Gate gate;
  HttpServer server({}, [&](const HttpRequest& request, const Responder& responder) {
    if (request.path == "/now") return responder.send({});
    gate(request, responder);
  });
  RawClient idle(server.port()), busy(server.port()), half_sent(server.port());
  EXPECT_EQ(idle.ask("GET /now HTTP/1.1\r\nHost: x\r\n\r\n").status, 200);
  busy.send(kGet);
  half_sent.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab");
  gate.wait_for(1);

  auto drained = std::async(std::launch::async, [&] { return server.drain(5s); });
  EXPECT_TRUE(idle.at_end());
  EXPECT_THROW(RawClient(server.port()).ask(kGet).status == 0 ? throw std::runtime_error("not served") : 0, std::runtime_error);
  half_sent.send("cd");
  gate.wait_for(2);
  EXPECT_EQ(drained.wait_for(50ms), std::future_status::timeout);
  gate.open();
  Reply reply = busy.read();
  EXPECT_EQ(reply.body, "done");
  EXPECT_EQ(reply.headers["Connection"], "close");
  EXPECT_EQ(half_sent.read().body, "done");
  EXPECT_TRUE(drained.get());
  EXPECT_TRUE(server.drain(5s));  // again: nothing to do
  EXPECT_EQ(server.connections(), 0);
}

TEST(HttpDrain, PastTheDeadlineConnectionsAreCut) {
  Gate gate;
  HttpServer server({}, [&](const HttpRequest& request, const Responder& responder) { gate(request, responder); });
  RawClient busy(server.port());
  busy.send(kGet);
  gate.wait_for(1);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(server.drain(80ms));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
  EXPECT_TRUE(busy.at_end());
  EXPECT_TRUE(gate.cancelled());
  gate.open();  // too late, harmless
}

TEST(HttpDrain, UnderLoadEveryAnswerIsWholeOrTheConnectionRefused) {
  HttpServer server({}, [](const HttpRequest& request, const Responder& responder) { responder.send({.body = request.body}); });
  std::atomic<int> served{0}, broken{0};
  std::vector<std::jthread> clients;
  for (int c = 0; c < 8; ++c)
    clients.emplace_back([&, port = server.port()] {
      try {
        for (;;) {
          RawClient client(port);
          Reply reply = client.ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
          if (reply.status == 0) break;  // the listening socket went away between connect and accept
          ++(reply.body == "hello" ? served : broken);
        }
      } catch (const std::runtime_error&) {  // refused: the server has stopped
      }
    });
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(server.drain(5s));
  clients.clear();
  EXPECT_GT(served, 0);
  EXPECT_EQ(broken, 0);
}

}  // namespace
}  // namespace muster::net
