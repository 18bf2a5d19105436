// What a well-behaved client sees: methods, bodies, keep-alive, order, answers from other threads.
#include "net/http_server.h"

#include <gmock/gmock.h>

#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "net/raw_client.h"

namespace muster::net {
namespace {
using test::RawClient;
using test::Reply;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::string_view kHost = "Host: x\r\n";

std::string get(std::string_view target) { return fmt::format("GET {} HTTP/1.1\r\n{}\r\n", target, kHost); }
std::string post(std::string_view target, std::string_view body) {
  return fmt::format("POST {} HTTP/1.1\r\n{}Content-Length: {}\r\n\r\n{}", target, kHost, body.size(), body);
}

/// "METHOD path|body".
void echo(const HttpRequest& request, const Responder& responder) {
  responder.send({.body = fmt::format("{} {}|{}", request.method, request.path, request.body), .content_type = "text/plain"});
}

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  HttpServer server({}, echo);
  EXPECT_GT(server.port(), 0);
  RawClient client(server.port());
  Reply reply = client.ask(get("/a?b=c"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "GET /a|");
  EXPECT_EQ(reply.headers["Content-Type"], "text/plain");
  EXPECT_FALSE(reply.headers.contains("Connection"));
  EXPECT_EQ(client.ask(post("/p", "hello")).body, "POST /p|hello");
  EXPECT_EQ(client.ask("BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n").body, "BREW /pot|");
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpServer, HandlerSeesTheWholeRequest) {
  HttpServer server({}, [](const HttpRequest& request, const Responder& responder) {
    EXPECT_EQ(request.headers.get("x-one"), "1");
    EXPECT_EQ(request.headers.get("X-EMPTY"), "");
    EXPECT_EQ(request.query.at("k"), "v w");
    EXPECT_TRUE(request.remote.starts_with("127.0.0.1:"));
    EXPECT_FALSE(request.is_cancelled());
    responder.send({.status = 201, .headers = {{"X-Back", "a\r\nb"}}});
  });
  RawClient client(server.port());
  Reply reply = client.ask("GET http://x/y?k=v+w HTTP/1.1\r\nhOST: x\r\nX-One:   1  \r\nX-Empty:\r\n\r\n");
  EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(reply.headers["X-Back"], "a  b");  // no header can be smuggled into an answer
  EXPECT_EQ(reply.headers["Content-Length"], "0");
}

TEST(HttpServer, HeadHasNoBody) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  client.send("HEAD /h HTTP/1.1\r\nHost: x\r\n\r\n");
  Reply reply = client.read(true);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers["Content-Length"], "8");
  EXPECT_EQ(client.ask(get("/next")).body, "GET /next|");
}

TEST(HttpServer, Http10) {
  HttpServer server({}, echo);
  RawClient closes(server.port());
  EXPECT_EQ(closes.ask("GET /a HTTP/1.0\r\n\r\n").body, "GET /a|");
  EXPECT_TRUE(closes.at_end());
  RawClient stays(server.port());
  Reply reply = stays.ask("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(reply.headers["Connection"], "keep-alive");
  EXPECT_EQ(stays.ask("GET /b HTTP/1.0\r\n\r\n").body, "GET /b|");
}

TEST(HttpServer, ConnectionClose) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  Reply reply = client.ask("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(reply.headers["Connection"], "close");
  EXPECT_TRUE(client.at_end());
}

TEST(HttpServer, ChunkedBody) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  client.send("POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwiki\r");
  std::this_thread::sleep_for(20ms);
  client.send("\n6;ext=1\r\npedia \r\n0\r\nTrailer: x\r\n\r\n");
  EXPECT_EQ(client.read().body, "POST /c|wikipedia ");
  EXPECT_EQ(client.ask(get("/n")).body, "GET /n|");
}

TEST(HttpServer, BodyWithZerosAndAllBytes) {
  std::string bytes;
  for (int i = 0; i < 100000; ++i) bytes.push_back(static_cast<char>(i * 7));
  HttpServer server({}, echo);
  RawClient client(server.port());
  EXPECT_EQ(client.ask(post("/b", bytes)).body, "POST /b|" + bytes);
}

TEST(HttpServer, ExpectContinue) {
  HttpServer server({.max_body_bytes = 10}, echo);
  RawClient client(server.port());
  EXPECT_EQ(client.ask("POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n").status, 100);
  EXPECT_EQ(client.ask("ok").body, "POST /e|ok");
  RawClient too_large(server.port());  // told before it sends the body
  EXPECT_EQ(too_large.ask("POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n").status, 413);
  RawClient unknown(server.port());
  EXPECT_EQ(unknown.ask("GET /e HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n").status, 417);
}

TEST(HttpServer, PipelinedRequestsAreAnsweredInOrder) {
  // Every other answer is late and comes from another thread.
  std::mutex mutex;
  std::vector<std::jthread> later;
  HttpServer server({}, [&](const HttpRequest& request, const Responder& responder) {
    if (request.path.size() % 2 == 0) return echo(request, responder);
    const std::lock_guard lock(mutex);
    later.emplace_back([request, responder] {
      std::this_thread::sleep_for(3ms);
      echo(request, responder);
    });
  });
  RawClient client(server.port());
  std::string all;
  for (int i = 0; i < 40; ++i)
    all += i % 3 == 0 ? post("/" + std::string(static_cast<size_t>(i), 'x'), "body") : get("/" + std::string(static_cast<size_t>(i), 'x'));
  client.send(all);
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(client.read().body,
              fmt::format("{} /{}|{}", i % 3 == 0 ? "POST" : "GET", std::string(static_cast<size_t>(i), 'x'), i % 3 == 0 ? "body" : ""));
}

TEST(HttpServer, OneByteAtATime) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  for (const char c : post("/slow", "abc")) {
    client.send({&c, 1});
    std::this_thread::sleep_for(100us);
  }
  EXPECT_EQ(client.read().body, "POST /slow|abc");
}

TEST(HttpServer, DroppedResponderIsA500) {
  HttpServer server({}, [](const HttpRequest&, const Responder&) {});
  RawClient client(server.port());
  Reply reply = client.ask(get("/"));
  EXPECT_EQ(reply.status, 500);
  EXPECT_THAT(reply.body, HasSubstr("without an answer"));
  EXPECT_EQ(client.ask(get("/")).status, 500);  // and the connection lives
}

TEST(HttpServer, ThrowingHandlerIsA500) {
  HttpServer server({}, [](const HttpRequest&, const Responder&) { throw Error(ErrorKind::corrupt, "broken \"thing\""); });
  RawClient client(server.port());
  Reply reply = client.ask(get("/"));
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.body, R"({"error": "internal error: broken \"thing\"", "code": 500})");
}

TEST(HttpServer, OnlyTheFirstAnswerCounts) {
  HttpServer server({}, [](const HttpRequest&, const Responder& responder) {
    const Responder copy = responder;
    copy.send({.body = "one"});
    responder.send({.body = "two"});
  });
  RawClient client(server.port());
  EXPECT_EQ(client.ask(get("/")).body, "one");
  EXPECT_EQ(client.ask(get("/")).body, "one");
}

TEST(HttpServer, ClientThatLeavesCancelsItsRequest) {
  std::promise<HttpRequest> seen;
  std::optional<Responder> held;
  HttpServer server({}, [&](HttpRequest request, const Responder& responder) {
    held = responder;
    seen.set_value(std::move(request));
  });
  RawClient client(server.port());
  client.send(get("/wait"));
  const HttpRequest request = seen.get_future().get();
  EXPECT_FALSE(request.is_cancelled());
  client.send(get("/pipelined"));  // bytes of a later request do not hide that the client leaves
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(request.is_cancelled());
  client.close();
  for (int i = 0; i < 500 && !request.is_cancelled(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(request.is_cancelled());
  held->send({});
}

TEST(HttpServer, AnswerTimeoutCancelsAndLateAnswersAreDropped) {
  std::mutex mutex;
  std::deque<std::pair<HttpRequest, Responder>> held;
  HttpServer server({.answer_timeout = 50ms}, [&](const HttpRequest& request, const Responder& responder) {
    if (request.path == "/fast") return echo(request, responder);
    const std::lock_guard lock(mutex);
    held.emplace_back(request, responder);
  });
  RawClient client(server.port());
  EXPECT_EQ(client.ask(get("/slow")).status, 504);
  {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(held.front().first.is_cancelled());
    held.front().second.send({.body = "late"});
  }
  EXPECT_EQ(client.ask(get("/fast")).body, "GET /fast|");
}

TEST(HttpServer, ResponderOutlivesServer) {
  std::optional<Responder> held;
  {
    std::promise<void> seen;
    HttpServer server({}, [&](const HttpRequest&, const Responder& responder) {
      held = responder;
      seen.set_value();
    });
    RawClient client(server.port());
    client.send(get("/"));
    seen.get_future().wait();
  }
  held->send({.body = "nobody hears"});
}

TEST(HttpServer, ManyKeepAliveConnections) {
  HttpServer server({}, echo);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 300; ++i) clients.push_back(std::make_unique<RawClient>(server.port()));
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < clients.size(); ++i) clients[i]->send(post("/" + std::to_string(i), std::to_string(round)));
    for (size_t i = 0; i < clients.size(); ++i) ASSERT_EQ(clients[i]->read().body, fmt::format("POST /{}|{}", i, round));
  }
  EXPECT_EQ(server.connections(), 300);
}

TEST(HttpServer, TakenPortSaysWhatToDo) {
  const HttpServer server({}, echo);
  try {
    const HttpServer second({.port = server.port()}, echo);
    FAIL() << "bound twice";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::io);
    EXPECT_THAT(e.what(), HasSubstr(fmt::format("port {} is taken on 127.0.0.1", server.port())));
    EXPECT_THAT(e.what(), HasSubstr("--port"));
  }
  EXPECT_THROW(HttpServer({.host = "203.0.113.7"}, echo), Error);  // not an address of this machine
  EXPECT_THROW(HttpServer({.host = "no such host"}, echo), Error);
}

TEST(HttpServer, PortIsFreeAgainAfterwards) {
  uint16_t port = 0;
  {
    const HttpServer server({}, echo);
    port = server.port();
    RawClient client(port);
    EXPECT_EQ(client.ask(get("/")).status, 200);
  }
  const HttpServer again({.port = port}, echo);
  EXPECT_EQ(again.port(), port);
}

}  // namespace
}  // namespace muster::net
