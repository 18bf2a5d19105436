// RFC 4180 records, line numbers, and how reading goes on behind a bad one.
#include "data/csv.h"

#include "written_folder.h"

namespace muster::data {
namespace {

using Rows = std::vector<std::pair<int64_t, std::vector<std::string>>>;

class CsvTest : public WrittenFolder {
 protected:
  /// Line and fields of each record; a bad one has its reason as its only field.
  static Rows parse(std::string_view content, char delimiter = ',', bool quotes = true) {
    CsvReader reader(content, delimiter, quotes, "f.csv");
    Rows rows;
    std::vector<std::string> fields;
    for (auto result = reader.next(fields); result != CsvReader::Result::end; result = reader.next(fields))
      rows.emplace_back(reader.line(), result == CsvReader::Result::bad ? std::vector<std::string>{"bad: " + reader.reason()} : fields);
    return rows;
  }
};

TEST_F(CsvTest, PlainRecords) {
  EXPECT_EQ(parse("a,b\n1,2\n"), (Rows{{1, {"a", "b"}}, {2, {"1", "2"}}}));
  EXPECT_EQ(parse("a,b\r\n1,2"), (Rows{{1, {"a", "b"}}, {2, {"1", "2"}}}));
  EXPECT_EQ(parse(",\n\n\r\n,x,\n"), (Rows{{1, {"", ""}}, {4, {"", "x", ""}}}));
  EXPECT_EQ(parse("a,"), (Rows{{1, {"a", ""}}}));
  EXPECT_EQ(parse("a,b\r"), (Rows{{1, {"a", "b"}}}));
  EXPECT_EQ(parse(""), Rows{});
  EXPECT_EQ(parse("\n\n"), Rows{});
}

TEST_F(CsvTest, QuotedFields) {
  EXPECT_EQ(parse("\"a,b\",\"say \"\"hi\"\"\"\n\"two\nlines\r\n\",\"\"\nx,y\n"),
            (Rows{{1, {"a,b", "say \"hi\""}}, {2, {"two\nlines\r\n", ""}}, {5, {"x", "y"}}}));
  EXPECT_EQ(parse("he said \"hi\",1\n"), (Rows{{1, {"he said \"hi\"", "1"}}}));
  EXPECT_EQ(parse("\"a\",1\n", ',', false), (Rows{{1, {"\"a\"", "1"}}}));
  EXPECT_EQ(parse("a\t\"b\tc\"\n", '\t'), (Rows{{1, {"a", "b\tc"}}}));
}

TEST_F(CsvTest, OtherLineEndsBelongToTheText) {
  const std::string odd = "a\u0085b\u2028c\vd\fe\rf";
  EXPECT_EQ(parse(odd + ",1\n"), (Rows{{1, {odd, "1"}}}));
}

TEST_F(CsvTest, TextBehindAClosingQuoteSpoilsOnlyItsLine) {
  EXPECT_EQ(parse("\"a\"b,1\nx,2\n"),
            (Rows{{1, {"bad: text follows the closing quote of a field; write \" inside quotes as \"\""}}, {2, {"x", "2"}}}));
  EXPECT_EQ(parse("p,\"open,1\nx,2\ny,\"3\"\n"),
            (Rows{{1, {"bad: the quote that opens here closes on line 3 with text behind it; write \" inside quotes as \"\""}},
                  {2, {"x", "2"}},
                  {3, {"y", "3"}}}));
}

TEST_F(CsvTest, AQuoteThatIsNeverClosedIsAnErrorWhereItOpens) {
  const auto error = [&](const std::string& content) { return message_of(ErrorKind::invalid_argument, [&] { parse(content); }); };
  EXPECT_EQ(error("a,b\n1,\"2\n3,4\n5,6\n"),
            "f.csv:2: a quote opens here and is never closed; close it, or write \" inside a text as \"\" and the text in quotes");
  EXPECT_THAT(error("a,\"x\ny\",\"z\n"), testing::StartsWith("f.csv:2: "));
  EXPECT_THAT(error("\""), testing::StartsWith("f.csv:1: "));
}

}  // namespace
}  // namespace muster::data
