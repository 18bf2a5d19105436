// Bodies in, questions out: every form that is taken, and the exact reason for every form that is not.
#include "serve/invocation.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "core/philox.h"

namespace muster::serve {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const ModelInfo kModel{.name = {}, .model_type = {}, .labels = {"a", "b"}, .max_length = 512, .precision = {}};

Invocation read(std::string body, const std::string& type = "application/json", InvocationLimits limits = {}) {
  net::HttpRequest request;
  request.body = std::move(body);
  if (!type.empty()) request.headers.add("content-type", type);
  return read_invocation(request, limits, kModel);
}
Question one(const std::string& body, const std::string& type = "application/json") { return read(body, type).questions.at(0); }

struct Bad {
  std::string body;
  ErrorKind kind;
  std::string says;
  std::string type = "application/json";
};
void expect_bad(const Bad& bad) {
  try {
    read(bad.body, bad.type, {.max_client_batch_size = 4});
    ADD_FAILURE() << "taken: " << bad.body.substr(0, 200);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), bad.kind) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(bad.says));
    EXPECT_LT(std::string_view(e.what()).size(), 600U);
  }
}
constexpr auto kInvalid = ErrorKind::invalid_argument;

TEST(Invocation, ACompressedBodyIsRefused) {
  net::HttpRequest request;
  request.body = "\"x\"";
  request.headers.add("content-encoding", "identity");
  EXPECT_THAT(read_invocation(request, {}, kModel).questions, SizeIs(1));
  net::HttpRequest packed;
  packed.body = "\"x\"";
  packed.headers.add("content-encoding", "gzip");
  try {
    read_invocation(packed, {}, kModel);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unsupported);
    EXPECT_THAT(e.what(), HasSubstr("content encoding 'gzip'"));
  }
}

TEST(Invocation, Inputs) {
  EXPECT_THAT(one(R"({"inputs": "x"})").texts, ElementsAre("x"));
  EXPECT_FALSE(one(R"({"inputs": "x"})").is_list);
  EXPECT_THAT(one(R"({"inputs": ["x", {"text": "y"}, ""]})").texts, ElementsAre("x", "y", ""));
  EXPECT_TRUE(one(R"({"inputs": ["x"]})").is_list);
  EXPECT_THAT(one(R"("bare \u00e9 \ud83d\ude00")").texts, ElementsAre("bare \xC3\xA9 \xF0\x9F\x98\x80"));
  EXPECT_THAT(one(R"(["a", "b"])").texts, ElementsAre("a", "b"));  // two texts, not a pair
  EXPECT_THAT(one(R"({"text": "t"})").texts, ElementsAre("t"));
  EXPECT_THAT(one("\xEF\xBB\xBF\"bom\"").texts, ElementsAre("bom"));
  EXPECT_THAT(one("\"nul \\u0000\"").texts, ElementsAre(std::string("nul \0", 5)));
  EXPECT_THAT(one("\"no type\"", "").texts, ElementsAre("no type"));
  EXPECT_THAT(one("\"type\"", " Application/JSON ; charset=\"UTF-8\"").texts, ElementsAre("type"));
}

TEST(Invocation, Parameters) {
  const Parameters none = one(R"({"inputs": "x", "parameters": {}})").parameters;
  EXPECT_FALSE(none.top_k_given);
  EXPECT_TRUE(none.tokenize.truncate);
  EXPECT_EQ(none.tokenize.max_length, 0);
  EXPECT_FALSE(none.function_to_apply);
  EXPECT_FALSE(one(R"({"parameters": null, "inputs": "x"})").parameters.top_k_given);
  const Parameters all =
      one(R"({"inputs": "x", "parameters": {"top_k": 2, "function_to_apply": "none", "truncation": false, "max_length": 512, "padding": true}})")
          .parameters;
  EXPECT_EQ(all.top_k, 2);
  EXPECT_EQ(all.function_to_apply, ScoreFunction::none);
  EXPECT_FALSE(all.tokenize.truncate);
  EXPECT_EQ(all.tokenize.max_length, 512);
  const Parameters every =
      one(R"({"inputs": "x", "parameters": {"top_k": null, "truncation": "longest_first", "function_to_apply": null}})").parameters;
  EXPECT_TRUE(every.top_k_given);
  EXPECT_EQ(every.top_k, std::nullopt);
  EXPECT_TRUE(every.tokenize.truncate);
}

TEST(Invocation, OtherMedia) {
  EXPECT_THAT(one(" as it\n is \n", "text/plain").texts, ElementsAre(" as it\n is \n"));
  EXPECT_THAT(one("{\"inputs\": 1}", "text/plain; charset=utf-8").texts, ElementsAre("{\"inputs\": 1}"));
  const Invocation lines =
      read("\"a\"\r\n\n{\"inputs\": [\"b\", \"c\"], \"parameters\": {\"top_k\": 1}}\n[\"d\"]", "application/jsonlines");
  ASSERT_THAT(lines.questions, SizeIs(3));
  EXPECT_TRUE(lines.lines);
  EXPECT_EQ(lines.accept, Media::json_lines);
  EXPECT_THAT(lines.questions[1].texts, ElementsAre("b", "c"));
  EXPECT_EQ(lines.questions[1].parameters.top_k, 1);
  EXPECT_FALSE(lines.questions[2].parameters.top_k_given);
  for (const char* type : {"application/x-jsonlines", "application/jsonl", "application/x-ndjson"}) EXPECT_TRUE(read("\"a\"", type).lines);
  EXPECT_THAT(one("a b\r\n\"c, \"\"d\"\"\ne\"\n\n\"\"\nlast", "text/csv").texts, ElementsAre("a b", "c, \"d\"\ne", "", "last"));
  EXPECT_THAT(one("inputs\nx\ninputs\n", "text/csv").texts, ElementsAre("x", "inputs"));
  EXPECT_TRUE(one("x", "text/csv").is_list);
}

TEST(Invocation, BadJson) {
  expect_bad({"", kInvalid, "the body is empty"});
  expect_bad({" \n", kInvalid, "the body is empty"});
  expect_bad({"{\"inputs\": \"x\"", kInvalid, "line 1, column 15"});
  expect_bad({"\n\n  oops", kInvalid, "line 3, column 3"});
  expect_bad({"\"x\" \"y\"", kInvalid, "the body is not JSON (byte 7)"});
  expect_bad({"\"\\ud800\"", kInvalid, "not JSON"});  // half of a surrogate pair
  expect_bad({"\"tab\there\"", kInvalid, "not JSON"});
  expect_bad({"[1e999]", kInvalid, "not JSON"});
  expect_bad({"\"" + std::string(100000, 'x'), kInvalid, "missing closing quote"});
  expect_bad({"\"ab\xff\"", kInvalid, "byte 3"});
  expect_bad({"\"\xED\xA0\x80\"", kInvalid, "byte 1"});
  expect_bad({"\xC0\xAF", kInvalid, "byte 0", "text/plain"});
  expect_bad({std::string(100, '['), kInvalid, "nested deeper than 16 at byte 16"});
  expect_bad({std::string(5000000, '['), kInvalid, "nested deeper than 16"});
}

TEST(Invocation, BadInputs) {
  expect_bad({"[]", kInvalid, "$: the list is empty"});
  expect_bad({R"({"inputs": []})", kInvalid, "$.inputs: the list is empty"});
  expect_bad({R"({"inputs": 7})", kInvalid, "$.inputs: expected a text, found number"});
  expect_bad({R"({"inputs": null})", kInvalid, "$.inputs: expected a text, found null"});
  expect_bad({R"({"inputs": ["a", true]})", kInvalid, "$.inputs[1]: expected a text, found boolean"});
  expect_bad({R"([["a", "b"]])", kInvalid, "$[0]: expected a text, found a list: pairs"});
  expect_bad({R"({"inputs": {"text": "a", "text_pair": "b"}})", kInvalid, "$.inputs: pairs of texts are not supported"});
  expect_bad({R"([{"text": 1}])", kInvalid, "$[0].text: expected a text, found number"});
  expect_bad({R"([{"txt": "a"}])", kInvalid, "$[0]: expected a text or {\"text\": ...}, found an object with the keys [txt]"});
  expect_bad({R"({"instances": ["a"]})", kInvalid, "expected \"inputs\""});
  expect_bad({"{}", kInvalid, "expected \"inputs\""});
  expect_bad({"3.5", kInvalid, "$: expected a text, found number"});
  expect_bad({R"({"inputs": "a", "input": "b"})", kInvalid, "unknown key \"input\""});
  expect_bad({R"(["1","2","3","4","5"])", ErrorKind::too_large, "5 texts: one request takes 4"});
  expect_bad({"[" + std::string(999999, ',') + "]", ErrorKind::too_large, "one request takes 4 texts"});
}

TEST(Invocation, BadParameters) {
  const auto with = [](const std::string& parameters) { return R"({"inputs": "a", "parameters": )" + parameters + "}"; };
  expect_bad({with("[]"), kInvalid, "$.parameters: expected an object, found array"});
  expect_bad({with(R"({"topk": 1})"), kInvalid, "$.parameters.topk: unknown parameter: there are top_k,"});
  for (const char* value : {"0", "-1", "1.5", "\"1\"", "true", "99999999999999999999", "18446744073709551615"})
    expect_bad({with(fmt::format(R"({{"top_k": {}}})", value)), kInvalid, "$.parameters.top_k: expected a whole number from 1"});
  expect_bad({with(R"({"max_length": 513})"), kInvalid, "$.parameters.max_length: 513 is more than the 512 tokens"});
  expect_bad({with(R"({"truncation": 1})"), kInvalid, "$.parameters.truncation: expected true or false"});
  expect_bad({with(R"({"function_to_apply": "relu"})"), kInvalid, "$.parameters.function_to_apply: expected \"softmax\""});
}

TEST(Invocation, BadMedia) {
  expect_bad({"x", ErrorKind::unsupported, "content type 'application/x-npy' is not supported", "application/x-npy"});
  expect_bad({"x", ErrorKind::unsupported, "charset 'latin-1'", "text/plain; charset=latin-1"});
  expect_bad({"\"a\"\n\n{\"inputs\": 1}", kInvalid, "line 3: $.inputs: expected a text", "application/jsonlines"});
  expect_bad({"\"a\"\n\"b", kInvalid, "line 2: the body is not JSON", "application/jsonlines"});
  expect_bad({"\"1\"\n\"2\"\n\"3\"\n\"4\"\n\"5\"", ErrorKind::too_large, "line 5", "application/jsonlines"});
  expect_bad({"a\nb,c\n", kInvalid, "CSV line 2: more than one field", "text/csv"});
  expect_bad({"a\n\n\"b\nc", kInvalid, "CSV line 3: a quote that is never closed", "text/csv"});
  expect_bad({"a\"b\n", kInvalid, "CSV line 1: a quote inside", "text/csv"});
  expect_bad({"inputs\n", kInvalid, "no record", "text/csv"});
  expect_bad({"1\n2\n3\n4\n5\n", ErrorKind::too_large, "5 records", "text/csv"});
}

TEST(Invocation, Accept) {
  EXPECT_EQ(accepted_media(std::nullopt, Media::json_lines), Media::json_lines);
  EXPECT_EQ(accepted_media("", Media::json), Media::json);
  EXPECT_EQ(accepted_media("*/*", Media::json_lines), Media::json_lines);
  EXPECT_EQ(accepted_media("application/*", Media::json), Media::json);
  EXPECT_EQ(accepted_media("Application/JSON; verbose=1", Media::json_lines), Media::json);
  EXPECT_EQ(accepted_media("application/jsonlines", Media::json), Media::json_lines);
  EXPECT_EQ(accepted_media("text/html, application/jsonlines;q=0.5, application/json; q=0.8", Media::json_lines), Media::json);
  EXPECT_EQ(accepted_media("text/html,*/*;q=0.1", Media::json), Media::json);
  EXPECT_EQ(accepted_media("text/csv", Media::json), std::nullopt);
  EXPECT_EQ(accepted_media("application/json;q=0", Media::json), std::nullopt);
  EXPECT_EQ(accepted_media(",;,", Media::json), std::nullopt);
}

TEST(Invocation, Utf8) {
  EXPECT_EQ(invalid_utf8_at("plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF"), std::nullopt);
  EXPECT_EQ(invalid_utf8_at(std::string_view("\0", 1)), std::nullopt);
  for (const std::string_view bad : {"\x80", "\xC1\x81", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                                     "\xF5\x80\x80\x80", "\xE2\x82", "\xF0\x9F\x98", "\xC3"})
    EXPECT_EQ(invalid_utf8_at("ok" + std::string(bad)), 2U);
}

TEST(Invocation, RandomBodiesOnlyThrowOurErrors) {
  const std::string seed = R"({"inputs": ["a\u00e9", {"text": "b"}], "parameters": {"top_k": null, "max_length": 5, "truncation": true}})";
  Philox random(11);
  for (int i = 0; i < 5000; ++i) {
    std::string body = seed;
    for (uint32_t edits = 1 + random.below(5); edits > 0 && !body.empty(); --edits) {
      const size_t at = random.below(static_cast<uint32_t>(body.size()));
      if (random.below(2) == 0)
        body[at] = static_cast<char>(random.next());
      else
        body.erase(at, random.below(8));
    }
    for (const char* type : {"application/json", "application/jsonlines", "text/csv", "text/plain"}) {
      try {
        read(body, type);
      } catch (const Error&) {  // any other exception fails the test
      }
    }
  }
}

}  // namespace
}  // namespace muster::serve
