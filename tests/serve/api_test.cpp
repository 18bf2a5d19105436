// A table of requests over loopback: exact status and body of each.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "net/http_client.h"
#include "serve/answer.h"
#include "serve/fake_model.h"
#include "serve/server.h"

namespace muster::serve {
namespace {
using net::HttpReply;
using test::FakeModel;
using testing::HasSubstr;
using testing::StartsWith;

class Api : public testing::Test {
 protected:
  HttpReply ask(const std::string& method, const std::string& path, const std::string& body = "", net::Headers headers = {}) {
    return client.request(
        {.url = fmt::format("http://127.0.0.1:{}{}", server.port(), path), .method = method, .headers = std::move(headers), .body = body});
  }
  HttpReply invoke(const std::string& body, const std::string& type = "application/json", const std::string& accept = "*/*") {
    return ask("POST", "/invocations", body, {{"Content-Type", type}, {"Accept", accept}});
  }
  /// {"label": ..., "score": ...} of every label of a text, best first.
  static std::vector<std::string> objects(std::string_view text) {
    const FakeModel fake;
    const auto ids = fake.tokenize(text, {}).ids;
    std::vector<float> logits;
    for (size_t i = 0; i < 3; ++i) logits.push_back(FakeModel::logit(ids, i));
    const std::vector<float> scores = scores_of(logits, ScoreFunction::softmax);
    std::vector<std::string> out;
    for (const size_t i : ranked(logits, std::nullopt)) {
      out.push_back("{\"label\": " + net::json_quote(fake.info().labels[i]) + ", \"score\": ");
      append_number(out.back(), scores[i]);
      out.back() += "}";
    }
    return out;
  }
  static std::string best(std::string_view text) { return objects(text)[0]; }
  static std::string all(std::string_view text) {
    const auto o = objects(text);
    return "[" + o[0] + ", " + o[1] + ", " + o[2] + "]";
  }

  InferenceServer server{{.http = {.max_body_bytes = 300000}, .batcher = {}, .limits = {.max_client_batch_size = 4}, .version = "1.2.3"},
                         [] { return std::make_unique<FakeModel>(); }};
  net::HttpClient client;
};

TEST_F(Api, Answers) {
  struct Case {
    std::string body, type, accept, expected;
  };
  const std::string json = "application/json", lines = "application/jsonlines";
  const std::vector<Case> cases{
      {R"({"inputs": "I love this"})", json, "*/*", "[" + best("I love this") + "]"},
      {R"({"inputs": ["a", "b"]})", json, json, "[" + best("a") + ", " + best("b") + "]"},
      {R"(["a"])", json, json, "[" + best("a") + "]"},
      {R"("a")", json, json, "[" + best("a") + "]"},
      {R"({"inputs": "a", "parameters": {"top_k": null}})", json, json, all("a")},
      {R"({"inputs": ["a", "b"], "parameters": {"top_k": null}})", json, json, "[" + all("a") + ", " + all("b") + "]"},
      {R"({"inputs": ["a"], "parameters": {"top_k": 1}})", json, json, "[[" + best("a") + "]]"},
      {"raw text\n", "text/plain", "*/*", "[" + best("raw text\n") + "]"},
      {"one\n\"two, 2\"\n", "text/csv", "*/*", "[" + best("one") + ", " + best("two, 2") + "]"},
      {"\"a\"\n{\"inputs\": [\"b\", \"c\"]}\n", lines, "*/*", "[" + best("a") + "]\n[" + best("b") + ", " + best("c") + "]\n"},
      {"\"a\"\n\"b\"", lines, json, "[[" + best("a") + "], [" + best("b") + "]]"},
      {R"(["a", "b"])", json, lines, best("a") + "\n" + best("b") + "\n"},
      {R"({"inputs": ""})", json, json, "[" + best("") + "]"},
  };
  for (const Case& c : cases) {
    const HttpReply reply = invoke(c.body, c.type, c.accept);
    EXPECT_EQ(reply.status, 200) << c.body;
    EXPECT_EQ(reply.body, c.expected);
    EXPECT_EQ(reply.headers.get("Content-Type"), c.expected.ends_with('\n') ? lines : json);
    EXPECT_TRUE(c.expected.ends_with('\n') || nlohmann::json::accept(reply.body));
  }
  EXPECT_EQ(ask("POST", "/invocations", "\"a\"").body, "[" + best("a") + "]");  // without a content type
}

TEST_F(Api, Headers) {
  const HttpReply reply = invoke(R"(["12345", "1"])");
  EXPECT_EQ(reply.headers.get("x-muster-tokens"), "10");
  for (const char* name : {"x-muster-queue-ms", "x-muster-inference-ms", "x-muster-total-ms"}) EXPECT_TRUE(reply.headers.get(name)) << name;
  EXPECT_FALSE(reply.headers.get("x-muster-truncated"));
}

TEST_F(Api, Truncation) {
  const std::string length62(62, 'x'), longer(5000, 'x');
  HttpReply reply = invoke("\"" + longer + "\"");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "[" + best(length62) + "]");
  EXPECT_EQ(reply.headers.get("x-muster-truncated"), "1");
  reply = invoke(R"({"inputs": ["abcdef", "ab"], "parameters": {"max_length": 5}})");
  EXPECT_EQ(reply.body, "[" + best("abc") + ", " + best("ab") + "]");
  EXPECT_EQ(reply.headers.get("x-muster-truncated"), "1");
  reply = invoke(R"({"inputs": ")" + longer + R"(", "parameters": {"truncation": false}})");
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(reply.body, R"({"error": "the text has 5002 tokens, the limit is 64", "code": 413})");
}

TEST_F(Api, LargeBodiesTakeTheLane) {
  const HttpReply reply = invoke("\"" + std::string(200000, 'x') + "\"");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "[" + best(std::string(62, 'x')) + "]");
  EXPECT_EQ(invoke("\"" + std::string(200000, 'x')).status, 400);
}

TEST_F(Api, Errors) {
  struct Case {
    std::string method, path, body, type, accept;
    int status;
    std::string error;
  };
  const std::string json = "application/json";
  const std::string routes = "GET /, GET /ping, GET /health, POST /invocations, GET /metrics";
  const std::vector<Case> cases{
      {"POST", "/invocations", "", json, "*/*", 400, "the body is empty: send a text"},
      {"POST", "/invocations", R"(["a", 1])", json, "*/*", 400, "$[1]: expected a text, found number"},
      {"POST", "/invocations", "{", json, "*/*", 400,
       "the body is not JSON (byte 2): parse error at line 1, column 2: syntax error while parsing object key - unexpected end of input; "
       "expected string literal"},
      {"POST", "/invocations", "\xFF", "text/plain", "*/*", 400, "the body is not UTF-8: byte 0 (counted from 0) is wrong"},
      {"POST", "/invocations", R"(["1","2","3","4","5"])", json, "*/*", 413, "$: 5 texts: one request takes 4"},
      {"POST", "/invocations", std::string(300001, ' '), json, "*/*", 413, "the body is larger than 300000 bytes"},
      {"POST", "/invocations", "\"a\"", "application/xml", "*/*", 415,
       "content type 'application/xml' is not supported: send application/json, application/jsonlines, text/plain or text/csv"},
      {"POST", "/invocations", "\"a\"", json, "text/html", 406,
       "answers are application/json or application/jsonlines: ask for one of them by Accept"},
      {"POST", "/invocations", "\"!\"", json, "*/*", 500, "the engine broke on '!'"},
      {"POST", "/invocations", R"(["a", "!"])", json, "*/*", 500, "text 2 of 2: the engine broke on '!'"},
      {"POST", "/invocations", "\"?\"", json, "*/*", 500,
       "the model gave a number that is not finite for this text: its weights may be broken"},
      {"GET", "/invocations", "", json, "*/*", 405, "/invocations takes POST, not GET"},
      {"POST", "/ping", "", json, "*/*", 405, "/ping takes GET, HEAD, not POST"},
      {"GET", "/nowhere", "", json, "*/*", 404, "there is no /nowhere: there are " + routes},
      {"GET", "/ping/", "", json, "*/*", 404, "there is no /ping/: there are " + routes},
  };
  for (const Case& c : cases) {
    const HttpReply reply = ask(c.method, c.path, c.body, {{"Content-Type", c.type}, {"Accept", c.accept}});
    EXPECT_EQ(reply.status, c.status) << c.method << c.path << c.body.substr(0, 100);
    EXPECT_EQ(reply.body, fmt::format("{{\"error\": {}, \"code\": {}}}", net::json_quote(c.error), c.status));
    EXPECT_EQ(reply.headers.get("Content-Type"), json);
  }
  EXPECT_EQ(ask("GET", "/invocations").headers.get("Allow"), "POST");
  EXPECT_EQ(ask("DELETE", "/ping").headers.get("Allow"), "GET, HEAD");
}

TEST_F(Api, PingHealthAboutMetrics) {
  EXPECT_EQ(ask("GET", "/ping").body, R"({"status": "ready"})");
  EXPECT_EQ(ask("GET", "/ping?x=1").status, 200);
  EXPECT_EQ(ask("GET", "/health").status, 200);
  const HttpReply head = ask("HEAD", "/ping");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  invoke("[\"a\", \"bb\"]");
  const auto about = nlohmann::json::parse(ask("GET", "/").body);
  EXPECT_EQ(about["name"], "muster");
  EXPECT_EQ(about["version"], "1.2.3");
  EXPECT_EQ(about["model"]["labels"], nlohmann::json({"joy", "anger", "sad\"ness"}));
  EXPECT_EQ(about["limits"]["max_client_batch_size"], 4);
  EXPECT_EQ(about["limits"]["max_body_bytes"], 300000);
  ask("GET", "/nowhere");
  const HttpReply metrics = ask("GET", "/metrics");
  EXPECT_THAT(metrics.headers.get("Content-Type").value_or(""), StartsWith("text/plain; version=0.0.4"));
  EXPECT_THAT(metrics.body, HasSubstr("muster_requests_total{route=\"/invocations\",status=\"200\"} 1\n"));
  EXPECT_THAT(metrics.body, HasSubstr("muster_requests_total{route=\"other\",status=\"404\"} 1\n"));
  EXPECT_THAT(metrics.body, HasSubstr("muster_batch_texts_bucket{le=\"2\"} 1\n"));
  EXPECT_THAT(metrics.body, HasSubstr("muster_text_tokens_sum 7\n"));
  EXPECT_THAT(metrics.body, HasSubstr("muster_ready 1\n"));
}

}  // namespace
}  // namespace muster::serve
