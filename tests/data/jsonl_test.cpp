// JSON Lines datasets.
#include "written_folder.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using JsonlTest = WrittenFolder;

TEST_F(JsonlTest, ReadsTextsAndEveryKindOfLabel) {
  write("train.jsonl",
        "\xef\xbb\xbf{\"text\":\"a\\n\\ud83d\\ude00\\u2028\",\"label\":1}\r\n\n{\"label\":\"1\",\"x\":[{}],\"text\":\"\"}\n{\"text\":"
        "\"b\u2028\u0085\",\"label\":1.0}\n{\"text\":\"c\",\"label\":-2}");
  const Dataset data = read();
  EXPECT_THAT(data.texts, ElementsAre("a\n😀\u2028", "", "b\u2028\u0085", "c"));
  EXPECT_THAT(data.label_names, ElementsAre("-2", "1"));
  EXPECT_THAT(data.labels, ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(data.lines, ElementsAre(1, 3, 4, 5));
  write("train.jsonl", "{\"text\":\"a\",\"label\":true}\n{\"text\":\"b\",\"label\":false}\n");
  EXPECT_THAT(read().label_names, ElementsAre("false", "true"));
}

TEST_F(JsonlTest, ReadsPairsAndOtherKeys) {
  write("train.jsonl", "{\"q\":\"a\",\"r\":\"b\",\"y\":\"no\"}\n");
  const Dataset data =
      read(with(&ReadOptions::text_column, "q", with(&ReadOptions::text_pair_column, "r", with(&ReadOptions::label_column, "y"))));
  EXPECT_THAT(data.texts, ElementsAre("a"));
  EXPECT_THAT(data.pairs, ElementsAre("b"));
}

TEST_F(JsonlTest, BadRowsSayWhy) {
  const auto error = [&](const std::string& row) {
    write("train.jsonl", "{\"text\":\"a\",\"label\":1}\n" + row + "\n");
    const std::string message = bad();
    EXPECT_THAT(message, StartsWith("$/train.jsonl:2: "));
    EXPECT_THAT(message, testing::EndsWith("; correct it or pass --skip_bad_rows"));
    return message.substr(std::string("$/train.jsonl:2: ").size());
  };
  EXPECT_THAT(error("{\"text\":\"a\""),
              StartsWith("not valid JSON at byte 12: syntax error while parsing object - unexpected end of input"));
  EXPECT_THAT(error("{\"text\":\"\\ud800\",\"label\":1}"), HasSubstr("not valid JSON at byte"));
  EXPECT_THAT(error("{} {}"), StartsWith("not valid JSON at byte 4"));
  EXPECT_THAT(error("{\"text\":\"\xff\"}"), StartsWith("not valid UTF-8 at byte 10 (0xff)"));
  EXPECT_THAT(error(std::string("{}\0", 3)), StartsWith("a NUL byte"));
  EXPECT_THAT(error("\"a\""), StartsWith("string where an object is expected ({\"text\": ..., \"label\": ...})"));
  EXPECT_THAT(error("{\"tweet\":\"a\",\"label\":1}"), StartsWith("no key 'text' (found: label, tweet)"));
  EXPECT_THAT(error("{}"), StartsWith("no key 'text' (found: none)"));
  EXPECT_THAT(error("{\"text\":7,\"label\":1}"), StartsWith("'text' is number where text is expected"));
  EXPECT_THAT(error("{\"text\":\"a\"}"), StartsWith("no key 'label' (found: text)"));
  EXPECT_THAT(error("{\"text\":\"a\",\"label\":null}"), StartsWith("'label' is null"));
  EXPECT_THAT(error("{\"text\":\"a\",\"label\":[1]}"), StartsWith("'label' is array where a name or number is expected"));
  EXPECT_THAT(error("{\"text\":\"a\",\"label\":\" \"}"), StartsWith("the label is empty"));
  EXPECT_THAT(error(std::string(100'000, '[')), StartsWith("not valid JSON at byte 100001"));
  EXPECT_THAT(error("{\"text\":\"a\",\"label\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}"),
              StartsWith("'label' is array"));
}

TEST_F(JsonlTest, SkipsBadRowsAndReadsUnlabelledOnes) {
  write("train.jsonl", "{\"text\":\"a\",\"label\":1}\n{\n{\"text\":\"b\",\"label\":1}\n");
  EXPECT_THAT(read(with(&ReadOptions::skip_bad_rows, true)).texts, ElementsAre("a", "b"));
  write("train.jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\",\"label\":null}\n");
  EXPECT_THAT(read(with(&ReadOptions::require_labels, false)).labels, ElementsAre(-1, -1));
}

TEST_F(JsonlTest, AnArrayIsExplained) {
  write("train.jsonl", " [\n{\"text\":\"a\",\"label\":1}]\n");
  EXPECT_EQ(bad(), "$/train.jsonl:1: a JSON array; write one object a line (jq -c '.[]' makes it so)");
  write("train.jsonl", "\n\n");
  EXPECT_EQ(bad(), "$/train.jsonl: no usable row; give a file with rows");
}

}  // namespace
}  // namespace muster::data
