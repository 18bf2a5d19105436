// The whole server with a fake model: start-up, concurrent load, overload, deadlines, clients that leave, shutdown.
#include "serve/server.h"

#include <gmock/gmock.h>

#include <future>
#include <map>
#include <thread>

#include "core/error.h"
#include "core/philox.h"
#include "net/http_client.h"
#include "net/raw_client.h"
#include "serve/fake_model.h"

namespace muster::serve {
namespace {
using net::HttpReply;
using net::test::RawClient;
using test::FakeModel;
using testing::HasSubstr;
using namespace std::chrono_literals;

std::string url(uint16_t port, std::string_view path) { return fmt::format("http://127.0.0.1:{}{}", port, path); }
HttpReply invoke(uint16_t port, const std::string& body) {
  return net::http_request({.url = url(port, "/invocations"), .method = "POST", .body = body});
}

/// A server and its model, which it owns.
struct Rig {
  explicit Rig(ServerOptions options = {})
      : server(std::move(options), [&] {
          auto made = std::make_unique<FakeModel>();
          model = made.get();
          return made;
        }) {}
  [[nodiscard]] uint16_t port() const { return server.port(); }
  FakeModel* model = nullptr;
  InferenceServer server;
};

TEST(Server, ThirtyTwoClientsGetTheAnswersTheyGetAlone) {
  Rig rig;
  rig.model->slow_down(300us);
  constexpr int kClients = 32, kRequests = 40;
  Philox random(5);
  std::vector<std::string> bodies;
  for (int i = 0; i < 50; ++i) {
    std::string list;
    for (uint32_t texts = 1 + random.below(4); texts > 0; --texts)
      list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", std::string(random.below(70), static_cast<char>('a' + random.below(26))));
    bodies.push_back(i % 3 == 0 ? "{\"inputs\": [" + list + "], \"parameters\": {\"top_k\": null}}" : "[" + list + "]");
  }
  std::vector<std::string> alone;
  for (const std::string& body : bodies) alone.push_back(invoke(rig.port(), body).body);

  std::atomic<int> wrong{0}, right{0};
  std::vector<std::jthread> clients;
  for (int c = 0; c < kClients; ++c)
    clients.emplace_back([&, c] {
      net::HttpClient client;
      for (int i = 0; i < kRequests; ++i) {
        const auto which = static_cast<size_t>(c * 7 + i * 3) % bodies.size();
        const HttpReply reply = client.request({.url = url(rig.port(), "/invocations"), .method = "POST", .body = bodies[which]});
        ++(reply.status == 200 && reply.body == alone[which] ? right : wrong);
      }
    });
  clients.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(right, kClients * kRequests);
  const std::string metrics = net::http_request({.url = url(rig.port(), "/metrics")}).body;
  EXPECT_THAT(metrics,
              HasSubstr(fmt::format("muster_requests_total{{route=\"/invocations\",status=\"200\"}} {}\n", kClients * kRequests + 50)));
  EXPECT_THAT(metrics, HasSubstr("muster_pending_texts 0\n"));
}

TEST(Server, OneBrokenTextDoesNotHurtOthers) {
  Rig rig;
  rig.model->hold();
  auto blocker = std::async(std::launch::async, [&] { return invoke(rig.port(), "\"block\""); });
  rig.model->wait_started(2);  // the warm-up was the first
  std::vector<std::future<HttpReply>> replies;
  for (int i = 0; i < 6; ++i)
    replies.push_back(std::async(std::launch::async, [&, i] { return invoke(rig.port(), i == 3 ? "\"!\"" : fmt::format("\"{}\"", i)); }));
  while (net::http_request({.url = url(rig.port(), "/metrics")}).body.find("muster_pending_texts 7\n") == std::string::npos)
    std::this_thread::sleep_for(5ms);
  rig.model->release();
  for (size_t i = 0; i < replies.size(); ++i) EXPECT_EQ(replies[i].get().status, i == 3 ? 500 : 200) << i;
}

TEST(Server, OverloadIs429WithRetryAfter) {
  Rig rig({.batcher = {.max_concurrent_requests = 3}, .limits = {}});
  rig.model->hold();
  auto a = std::async(std::launch::async, [&] { return invoke(rig.port(), "\"a\""); });
  rig.model->wait_started(2);
  auto b = std::async(std::launch::async, [&] { return invoke(rig.port(), "[\"b\", \"c\"]"); });
  while (net::http_request({.url = url(rig.port(), "/metrics")}).body.find("muster_pending_texts 3\n") == std::string::npos)
    std::this_thread::sleep_for(5ms);
  const HttpReply refused = invoke(rig.port(), "\"d\"");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.body, R"({"error": "3 texts are waiting and the queue takes 3: try again later", "code": 429})");
  EXPECT_TRUE(refused.headers.get("Retry-After"));
  EXPECT_EQ(net::http_request({.url = url(rig.port(), "/ping")}).status, 200);  // busy is not sick
  rig.model->release();
  EXPECT_EQ(a.get().status, 200);
  EXPECT_EQ(b.get().status, 200);
  EXPECT_EQ(invoke(rig.port(), "\"d\"").status, 200);
}

TEST(Server, RequestTimeoutIs504) {
  Rig rig({.request_timeout = 80ms});
  rig.model->hold();
  auto running = std::async(std::launch::async, [&] { return invoke(rig.port(), "\"a\"").status; });
  rig.model->wait_started(2);
  EXPECT_EQ(invoke(rig.port(), "\"waits\"").status, 504);
  EXPECT_EQ(running.get(), 504);
  rig.model->release();
  EXPECT_EQ(invoke(rig.port(), "\"b\"").status, 200);
}

TEST(Server, ClientsThatLeaveAreNotComputed) {
  Rig rig;
  rig.model->hold();
  auto running = std::async(std::launch::async, [&] { return invoke(rig.port(), "\"a\"").status; });
  rig.model->wait_started(2);
  {
    RawClient leaves(rig.port());
    leaves.send("POST /invocations HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n\"!!\"");
    while (net::http_request({.url = url(rig.port(), "/metrics")}).body.find("muster_pending_texts 2\n") == std::string::npos)
      std::this_thread::sleep_for(5ms);
  }
  std::this_thread::sleep_for(50ms);
  rig.model->release();
  EXPECT_EQ(running.get(), 200);
  EXPECT_EQ(invoke(rig.port(), "\"b\"").status, 200);
  EXPECT_THAT(net::http_request({.url = url(rig.port(), "/metrics")}).body, HasSubstr("muster_batches_failed_total 0\n"));
}

TEST(Server, PingIs503WhileLoading) {
  std::promise<void> go;
  uint16_t port = 0;
  {
    const net::HttpServer probe({}, [](const net::HttpRequest&, const net::Responder&) {});
    port = probe.port();
  }
  auto server = std::async(std::launch::async, [&] {
    return std::make_unique<InferenceServer>(ServerOptions{.http = {.port = port}}, [&] {
      go.get_future().wait();
      return std::make_unique<FakeModel>();
    });
  });
  HttpReply reply;
  for (int i = 0; i < 1000 && reply.status == 0; ++i) {
    try {
      reply = net::http_request({.url = url(port, "/ping")});
    } catch (const Error&) {  // not listening yet
      std::this_thread::sleep_for(5ms);
    }
  }
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.body, HasSubstr("loading"));
  EXPECT_EQ(invoke(port, "\"a\"").status, 503);
  EXPECT_THAT(net::http_request({.url = url(port, "/metrics")}).body, HasSubstr("muster_ready 0\n"));
  EXPECT_EQ(net::http_request({.url = url(port, "/")}).status, 200);
  go.set_value();
  const auto ready = server.get();
  EXPECT_EQ(net::http_request({.url = url(port, "/ping")}).status, 200);
}

TEST(Server, FailedStartLeavesNothingBehind) {
  EXPECT_THROW(InferenceServer({}, []() -> std::unique_ptr<Model> { throw Error(ErrorKind::corrupt, "broken weights"); }), Error);
  EXPECT_THROW(InferenceServer({.batcher = {.max_batch_tokens = 10}}, [] { return std::make_unique<FakeModel>(); }), Error);
  struct Broken : FakeModel {
    std::vector<float> run(const text::TokenBatch&) override { return {}; }
  };
  EXPECT_THROW(InferenceServer({}, [] { return std::make_unique<Broken>(); }), Error);
}

TEST(Server, DrainAnswersWhatHasBegun) {
  auto rig = std::make_unique<Rig>();
  const uint16_t port = rig->port();
  rig->model->hold();
  auto running = std::async(std::launch::async, [&] { return invoke(port, "\"a\""); });
  rig->model->wait_started(2);
  auto waiting = std::async(std::launch::async, [&] { return invoke(port, "[\"b\", \"c\"]"); });
  while (net::http_request({.url = url(port, "/metrics")}).body.find("muster_pending_texts 3\n") == std::string::npos)
    std::this_thread::sleep_for(5ms);
  auto waiter = std::async(std::launch::async, [&] { rig->server.wait(); });
  auto drained = std::async(std::launch::async, [&] { return rig->server.drain(10s); });
  EXPECT_EQ(drained.wait_for(50ms), std::future_status::timeout);
  rig->model->release();
  EXPECT_EQ(running.get().status, 200);
  EXPECT_EQ(waiting.get().status, 200);
  EXPECT_TRUE(drained.get());
  waiter.get();
  EXPECT_THROW(net::http_request({.url = url(port, "/ping")}), Error);
  rig.reset();
}

TEST(Server, DrainUnderLoadLosesNothing) {
  Rig rig;
  rig.model->slow_down(500us);
  const std::string expected = invoke(rig.port(), "\"text\"").body;
  std::atomic<int> right{0}, wrong{0};
  std::vector<std::jthread> clients;
  for (int c = 0; c < 8; ++c)
    clients.emplace_back([&, port = rig.port()] {
      try {
        for (;;) {
          const HttpReply reply = invoke(port, "\"text\"");
          if (reply.status == 503) return;
          ++(reply.status == 200 && reply.body == expected ? right : wrong);
        }
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::io) ++wrong;  // refused once the listening socket is closed
      }
    });
  std::this_thread::sleep_for(150ms);
  EXPECT_TRUE(rig.server.drain(10s));
  clients.clear();
  EXPECT_GT(right, 0);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace muster::serve
