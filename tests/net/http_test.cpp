#include "net/http.h"

#include <gtest/gtest.h>

namespace muster::net {
namespace {
std::string path_of(std::string_view target) {
  std::string path;
  std::map<std::string, std::string> query;
  split_target(target, path, query);
  return path;
}

TEST(HttpTarget, PathAndQuery) {
  std::string path;
  std::map<std::string, std::string> query;
  split_target("/a%20b/c?x=1&y=a+b%26c&flag&x=2&=v", path, query);
  EXPECT_EQ(path, "/a b/c");
  EXPECT_EQ(query, (std::map<std::string, std::string>{{"x", "2"}, {"y", "a b&c"}, {"flag", ""}, {"", "v"}}));
  EXPECT_EQ(path_of("/a+b"), "/a+b");
  EXPECT_EQ(path_of("http://host:80/ping?x"), "/ping");
  EXPECT_EQ(path_of("http://host"), "/");
  EXPECT_EQ(path_of("http://host?x"), "/");
  EXPECT_EQ(path_of("/see?url=http://x/y"), "/see");
  EXPECT_EQ(path_of("*"), "*");
  EXPECT_EQ(path_of(""), "/");
}

TEST(HttpTarget, BrokenEscapesStay) {
  EXPECT_EQ(path_of("/%"), "/%");
  EXPECT_EQ(path_of("/%4"), "/%4");
  EXPECT_EQ(path_of("/%zz"), "/%zz");
  EXPECT_EQ(path_of("/%4a"), "/J");
}

TEST(HttpHeaders, NamesCompareWithoutCase) {
  Headers headers{{"Content-Type", "a"}, {"X", "1"}};
  headers.add("x", "2");
  EXPECT_EQ(headers.get("content-type"), "a");
  EXPECT_EQ(headers.get("X"), "1");
  EXPECT_EQ(headers.get("content-typ"), std::nullopt);
  EXPECT_EQ(headers.size(), 3U);
}

TEST(HttpError, IsJsonWhateverTheMessage) {
  EXPECT_EQ(error_response(400, "a \"b\"\n").body, R"({"error": "a \"b\"\n", "code": 400})");
  EXPECT_EQ(error_response(400, "\xff!").body, "{\"error\": \"\xEF\xBF\xBD!\", \"code\": 400}");
}

}  // namespace
}  // namespace muster::net
