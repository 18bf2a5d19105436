// CSV and TSV datasets: columns, labels, bad rows, and which file of a folder is read.
#include <algorithm>
#include <ctime>

#include "written_folder.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using TableTest = WrittenFolder;

TEST_F(TableTest, ReadsCsvByColumnName) {
  write("train.csv", "\xef\xbb\xbfid,label,text\r\n1,pos,\"good, very \"\"good\"\"\"\r\n2,neg,\"bad\nday\"\r\n3,pos,\r\n");
  const Dataset data = read();
  EXPECT_THAT(data.texts, ElementsAre("good, very \"good\"", "bad\nday", ""));
  EXPECT_THAT(data.label_names, ElementsAre("neg", "pos"));
  EXPECT_THAT(data.labels, ElementsAre(1, 0, 1));
  EXPECT_THAT(data.lines, ElementsAre(2, 3, 5));
  EXPECT_EQ(data.where(2), path("train.csv") + ":5");
}

TEST_F(TableTest, ReadsTsvPairsAndOtherColumnNames) {
  write("train.tsv", "a\tb\ty\nleft\tright\t0\n1\t2\t1.0\n");
  ReadOptions options =
      with(&ReadOptions::text_column, "a", with(&ReadOptions::text_pair_column, "b", with(&ReadOptions::label_column, "y")));
  Dataset data = read(options);
  EXPECT_THAT(data.texts, ElementsAre("left", "1"));
  EXPECT_THAT(data.pairs, ElementsAre("right", "2"));
  EXPECT_THAT(data.labels, ElementsAre(0, 1));
  options.text_pair_column = "a";
  EXPECT_THAT(read(options).pairs, ElementsAre("left", "1"));
}

TEST_F(TableTest, MissingColumnsListWhatIsThere) {
  write("train.csv", "tweet,sentiment\nx,1\n");
  EXPECT_EQ(bad(), "$/train.csv:1: no column 'text' in the header; found: tweet, sentiment; name one with --text_column");
  EXPECT_EQ(bad(with(&ReadOptions::text_column, "tweet")),
            "$/train.csv:1: no column 'label' in the header; found: tweet, sentiment; name one with --label_column");
  EXPECT_EQ(bad(with(&ReadOptions::text_column, "tweet",
                     with(&ReadOptions::label_column, "sentiment", with(&ReadOptions::text_pair_column, "x")))),
            "$/train.csv:1: no column 'x' in the header; found: tweet, sentiment; name one with --text_pair_column");
  write("train.csv", "text,label,text\nx,1,2\n");
  EXPECT_EQ(bad(), "$/train.csv:1: the column 'text' is there twice; rename one");
  write("train.csv", "text;label\nx;1\n");
  EXPECT_THAT(bad(), HasSubstr("found: text;label;"));
}

TEST_F(TableTest, BadRowsNameTheirLine) {
  const auto error = [&](const std::string& rows) {
    write("train.csv", "text,label\n" + rows);
    return bad();
  };
  EXPECT_EQ(error("a,1\n\"b\nb\",1\nc\n"), "$/train.csv:5: 1 field where the header has 2; correct it or pass --skip_bad_rows");
  EXPECT_EQ(error("a, b,1\n"), "$/train.csv:2: 3 fields where the header has 2; correct it or pass --skip_bad_rows");
  EXPECT_EQ(error("a, \n"), "$/train.csv:2: the label is empty; correct it or pass --skip_bad_rows");
  EXPECT_EQ(error("ab\xc3,1\n"), "$/train.csv:2: not valid UTF-8 at byte 3 (0xc3); correct it or pass --skip_bad_rows");
  EXPECT_EQ(error("\"a\" b,1\n"),
            "$/train.csv:2: text follows the closing quote of a field; write \" inside quotes as \"\"; correct it or pass --skip_bad_rows");
  EXPECT_EQ(error("a,1\n\"b,1\nc,1\n"),
            "$/train.csv:3: a quote opens here and is never closed; close it, or write \" inside a text as \"\" and the text in quotes");
  EXPECT_EQ(error(""), "$/train.csv: no usable row; give a file with rows");
}

TEST_F(TableTest, SkippingGoesOnWithTheNextRow) {
  write("train.csv", "text,label\na,1\nb\n\"c\"c,1\nd,0\n\"e\ne\",\n\xff,1\nf,1\n");
  const Dataset data = read(with(&ReadOptions::skip_bad_rows, true));
  EXPECT_THAT(data.texts, ElementsAre("a", "d", "f"));
  EXPECT_THAT(data.lines, ElementsAre(2, 5, 9));
  EXPECT_EQ(data.skipped, 4);
  write("train.csv", "text,label\na,1\n\"b,1\n");
  EXPECT_THAT(bad(with(&ReadOptions::skip_bad_rows, true)), HasSubstr("never closed"));
}

TEST_F(TableTest, EmptyFilesAndHeaders) {
  write("train.csv", "");
  EXPECT_EQ(bad(), "$/train.csv: the file is empty; give one with rows");
  write("train.csv", "\xef\xbb\xbf");
  EXPECT_EQ(bad(), "$/train.csv: the file is empty; give one with rows");
  write("train.csv", "\n\r\n");
  EXPECT_EQ(bad(), "$/train.csv: the file is empty; give one with a header and rows");
  write("train.csv", "\"text\"x,label\n");
  EXPECT_THAT(bad(), HasSubstr("$/train.csv:1: the header cannot be read: text follows"));
  write("train.csv", "text,\xff\n");
  EXPECT_EQ(bad(), "$/train.csv:1: the header is not valid UTF-8 at byte 1 (0xff); save the file as UTF-8");
}

TEST_F(TableTest, QuotesCanBeTurnedOff) {
  write("train.tsv", "text\tlabel\n\"So it begins\" she said\t1\n\"open\t0\n");
  EXPECT_THAT(bad(), HasSubstr("$/train.tsv:2: text follows the closing quote"));
  EXPECT_THAT(read(with(&ReadOptions::quotes, false)).texts, ElementsAre("\"So it begins\" she said", "\"open"));
}

TEST_F(TableTest, LabelsMayBeLeftOutWhenNotRequired) {
  write("train.csv", "text\na\n");
  EXPECT_THAT(read(with(&ReadOptions::require_labels, false)).labels, ElementsAre(-1));
  write("train.csv", "text,label\na,\nb,x\n");
  const Dataset data = read(with(&ReadOptions::require_labels, false));
  EXPECT_THAT(data.labels, ElementsAre(-1, 0));
  EXPECT_FALSE(data.has_labels());
}

TEST_F(TableTest, EverySplitAgreesOnTheOrderOfTheTrainSplit) {
  write("train.csv", "text,label\na,happy\nb,angry\nc,sad\n");
  write("test.csv", "text,label\na,sad\n");
  const Dataset test = read(with(&ReadOptions::split, "test"));
  EXPECT_THAT(test.label_names, ElementsAre("angry", "happy", "sad"));
  EXPECT_THAT(test.labels, ElementsAre(2));
  write("validation.jsonl", "{\"text\":\"x\",\"label\":\"bored\"}\n");
  EXPECT_EQ(bad(with(&ReadOptions::split, "val")),
            "$/validation.jsonl:1: the label 'bored' is not one of 0 angry, 1 happy, 2 sad; correct it or pass --skip_bad_rows");
}

TEST_F(TableTest, TwoFormatsOfOneSplitNeedAChoice) {
  write("train.csv", "text,label\ncomma,1\n");
  write("train.tsv", "text\tlabel\ntab\t1\n");
  EXPECT_EQ(bad(), "$: both $/train.csv and $/train.tsv have the split 'train'; name one of them, or choose with --format");
  EXPECT_THAT(read(with(&ReadOptions::format, Format::tsv)).texts, ElementsAre("tab"));
  EXPECT_THAT(read("train.csv").texts, ElementsAre("comma"));
  EXPECT_EQ(message_of(ErrorKind::not_found, [&] { (void)read(with(&ReadOptions::format, Format::jsonl)); }),
            "$: no split 'train' as jsonl; there is no split at all");
}

TEST_F(TableTest, OneFileIsReadForWhateverSplit) {
  write("tweets.csv", "text,label\na,1\n");
  EXPECT_EQ(read("tweets.csv", with(&ReadOptions::split, "test")).size(), 1U);
  EXPECT_TRUE(has_split(path("tweets.csv"), "train"));
  EXPECT_FALSE(has_split(path("tweets.csv"), "val"));
  write("tweets.dat", "text,label\na,1\n");
  EXPECT_EQ(message_of(ErrorKind::invalid_argument, [&] { (void)read("tweets.dat"); }),
            "$/tweets.dat: the ending says no format; name it with --format csv|tsv|jsonl|tweeteval|text");
  EXPECT_EQ(read("tweets.dat", with(&ReadOptions::format, Format::csv)).size(), 1U);
  EXPECT_EQ(message_of(ErrorKind::too_large, [&] { (void)read("tweets.csv", with(&ReadOptions::max_bytes, 5U)); }),
            "$/tweets.csv: larger than the limit of 5 bytes for this kind of file");
}

TEST_F(TableTest, FormatNames) {
  for (const Format format : {Format::automatic, Format::tweeteval, Format::csv, Format::tsv, Format::jsonl, Format::text})
    EXPECT_EQ(parse_format(name_of(format)), format);
  EXPECT_EQ(message_of(ErrorKind::usage, [] { parse_format("parquet"); }),
            "unknown data format 'parquet'; use auto, tweeteval, csv, tsv, jsonl or text");
}

TEST_F(TableTest, TheWorkGrowsWithTheRowsOnly) {
  // Processor time, as other work of the machine must not count; the ratio, as sanitizers must not.
  const auto seconds = [&](const std::string& ending, int rows) {
    std::string content = ending == "csv" ? "text,label\n" : "";
    for (int i = 0; i < rows; ++i) {
      const std::string text =
          "row " + std::to_string(i) + " says ünïcode and some more words, so that it is as long as a tweet is on average, or nearly";
      content += ending == "csv" ? "\"" + text + "\"," + std::to_string(i % 3) + "\n"
                                 : "{\"text\":\"" + text + "\",\"label\":" + std::to_string(i % 3) + "}\n";
    }
    write("rows." + ending, content);
    const std::clock_t start = std::clock();
    EXPECT_EQ(read("rows." + ending).size(), static_cast<size_t>(rows));
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  for (const char* ending : {"csv", "jsonl"}) {
    const double small = seconds(ending, 4'000), large = seconds(ending, 32'000);
    EXPECT_LT(large, 30 * std::max(small, 0.002)) << ending << ": " << small << " s, then " << large << " s for 8 times the rows";
  }
}

}  // namespace
}  // namespace muster::data
