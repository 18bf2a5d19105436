#include "net/http_client.h"

#include <gmock/gmock.h>

#include <thread>

#include "core/error.h"
#include "net/http_server.h"

namespace muster::net {
namespace {
using testing::HasSubstr;
using namespace std::chrono_literals;

std::string url(const HttpServer& server, std::string_view path) { return fmt::format("http://127.0.0.1:{}{}", server.port(), path); }

/// Runs `call`, expects an Error of `kind` and returns its text.
std::string failure(const HttpCall& call, ErrorKind kind) {
  try {
    const HttpReply reply = http_request(call);
    ADD_FAILURE() << "answered " << reply.status;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "";
}

TEST(HttpClient, MethodsHeadersBodies) {
  HttpServer server({}, [](const HttpRequest& r, const Responder& responder) {
    responder.send({.status = r.path == "/missing" ? 404 : 200,
                    .body = fmt::format("{} {} {} {}", r.method, r.body, r.headers.get("X-A").value_or("-"),
                                        r.headers.get("Content-Type").value_or("-")),
                    .headers = {{"X-Reply", "v"}}});
  });
  HttpReply reply = http_request({.url = url(server, "/"), .headers = {{"X-A", "1"}}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "GET  1 -");
  EXPECT_EQ(reply.headers.get("x-reply"), "v");
  EXPECT_EQ(
      http_request({.url = url(server, "/"), .method = "POST", .headers = {{"Content-Type", "text/plain"}}, .body = std::string("a\0b", 3)})
          .body,
      std::string("POST a\0b - text/plain", 21));
  EXPECT_EQ(http_request({.url = url(server, "/"), .method = "POST"}).body, "POST  - application/x-www-form-urlencoded");
  EXPECT_EQ(http_request({.url = url(server, "/"), .method = "PUT", .body = "b"}).body, "PUT b - -");
  EXPECT_EQ(http_request({.url = url(server, "/"), .method = "DELETE"}).body.substr(0, 6), "DELETE");
  reply = http_request({.url = url(server, "/missing"), .method = "HEAD"});
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.body, "");
}

TEST(HttpClient, ReusesItsConnection) {
  std::vector<std::string> remotes;
  HttpServer server({.io_threads = 1}, [&](const HttpRequest& request, const Responder& responder) {
    remotes.push_back(request.remote);
    responder.send({.body = "{}"});
  });
  HttpClient client;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.request({.url = url(server, "/"), .method = "POST", .body = "x"}).status, 200);
  server.drain(1s);
  ASSERT_EQ(remotes.size(), 3U);
  EXPECT_EQ(remotes[0], remotes[2]);
}

TEST(HttpClient, FailuresNameTheUrl) {
  std::string nobody;
  {
    const HttpServer server({}, [](const HttpRequest&, const Responder&) {});
    nobody = url(server, "/gone");
  }
  EXPECT_THAT(failure({.url = nobody}, ErrorKind::io), HasSubstr(nobody));
  EXPECT_THAT(failure({.url = "ftp://x/y"}, ErrorKind::usage), HasSubstr("ftp://x/y"));
  EXPECT_THAT(failure({.url = "file:///etc/passwd"}, ErrorKind::usage), HasSubstr("http"));
  EXPECT_THAT(failure({.url = "not a url"}, ErrorKind::usage), HasSubstr("not a url"));
  EXPECT_THAT(failure({.url = ""}, ErrorKind::usage), HasSubstr("URL"));
}

TEST(HttpClient, TimeoutAndSize) {
  std::vector<Responder> held;
  HttpServer server({.io_threads = 1}, [&](const HttpRequest& request, const Responder& responder) {
    if (request.path == "/large") return responder.send({.body = std::string(100000, 'x')});
    held.push_back(responder);
  });
  EXPECT_THAT(failure({.url = url(server, "/never"), .timeout = 50ms}, ErrorKind::timeout), HasSubstr("/never"));
  EXPECT_THAT(failure({.url = url(server, "/large"), .max_reply_bytes = 99999}, ErrorKind::too_large), HasSubstr("99999"));
  EXPECT_EQ(http_request({.url = url(server, "/large"), .max_reply_bytes = 100000}).body.size(), 100000U);
  EXPECT_THROW(http_request({.url = url(server, "/"), .headers = {{"A", "b\r\nC: d"}}}), Error);
  server.drain(0s);
}

}  // namespace
}  // namespace muster::net
