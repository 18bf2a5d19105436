// TweetEval folders and plain lines, with the traps that real files have set.
#include "written_folder.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TweetEvalTest : public WrittenFolder {
 protected:
  TweetEvalTest() {
    write("mapping.txt", "0\tanger\n1\tjoy\n2\tsadness\n");
    write("train_text.txt", "so angry \nhappy\n\nsad\n");
    write("train_labels.txt", "0\n1\n1\n2\n");
  }
};

TEST_F(TweetEvalTest, ReadsTextsAndLabels) {
  const Dataset data = read();
  EXPECT_THAT(data.texts, ElementsAre("so angry ", "happy", "", "sad"));
  EXPECT_THAT(data.labels, ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(data.label_names, ElementsAre("anger", "joy", "sadness"));
  EXPECT_THAT(data.lines, ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(data.pairs.empty());
  EXPECT_TRUE(data.has_labels());
  EXPECT_EQ(data.where(2), path("train_text.txt") + ":3");
}

TEST_F(TweetEvalTest, OnlyLineFeedsEndLines) {
  write("train_text.txt", "a\u0085b\nc\u2028d\u2029\ne\vf\fg\x1c\nh\ri\n");
  EXPECT_THAT(read().texts, ElementsAre("a\u0085b", "c\u2028d\u2029", "e\vf\fg\x1c", "h\ri"));
}

TEST_F(TweetEvalTest, CarriageReturnsMarksAndAMissingLastLineEnd) {
  write("train_text.txt", "\xef\xbb\xbfone\r\ntwo\r\nthree\r\nfour");
  write("train_labels.txt",
        "\xef\xbb\xbf"
        "0\r\n 1 \r\njoy\r\n2\n\n\n");
  const Dataset data = read();
  EXPECT_THAT(data.texts, ElementsAre("one", "two", "three", "four"));
  EXPECT_THAT(data.labels, ElementsAre(0, 1, 1, 2));
}

TEST_F(TweetEvalTest, CountsThatDifferAreAnErrorEvenWhenSkipping) {
  write("train_labels.txt", "0\n1\n");
  const std::string expected =
      "$/train_text.txt:3: $/train_text.txt has 4 texts but $/train_labels.txt has 2 labels; this line is the first without a partner, so "
      "the files do not belong together";
  EXPECT_EQ(bad(), expected);
  EXPECT_EQ(bad(with(&ReadOptions::skip_bad_rows, true)), expected);
  write("train_labels.txt", "0\n1\n0\n1\n0\n");
  EXPECT_THAT(bad(), HasSubstr("$/train_labels.txt:5: $/train_text.txt has 4 texts"));
}

TEST_F(TweetEvalTest, BadRowsNameTheirFileAndLine) {
  write("train_labels.txt", "0\n7\n1\n2\n");
  EXPECT_EQ(bad(), "$/train_labels.txt:2: the label '7' is not one of 0 anger, 1 joy, 2 sadness; correct it or pass --skip_bad_rows");
  write("train_labels.txt", "0\n1\n\n2\n");
  EXPECT_EQ(bad(), "$/train_labels.txt:3: the label is empty; correct it or pass --skip_bad_rows");
  write("train_text.txt", "ok\nok\nok\n\xe2\x82 cut\n");
  write("train_labels.txt", "0\n1\n1\n2\n");
  EXPECT_EQ(bad(), "$/train_text.txt:4: not valid UTF-8 at byte 1 (0xe2); correct it or pass --skip_bad_rows");
}

TEST_F(TweetEvalTest, BadRowsAreSkippedCountedAndPrinted) {
  std::string texts, labels;
  for (int i = 0; i < 20; ++i) {
    texts += i == 3 ? "\xff\n" : "t\n";
    labels += i % 2 == 0 ? "9\n" : "1\n";
  }
  write("train_text.txt", texts);
  write("train_labels.txt", labels);
  testing::internal::CaptureStderr();
  const Dataset data = read(with(&ReadOptions::skip_bad_rows, true));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(data.size(), 9U);
  EXPECT_EQ(data.labels.size(), 9U);
  EXPECT_EQ(data.skipped, 11);
  EXPECT_THAT(data.lines, ElementsAre(2, 6, 8, 10, 12, 14, 16, 18, 20));
  EXPECT_THAT(log, HasSubstr("warning: " + path("train_text.txt") + ":4: not valid UTF-8 at byte 1 (0xff): row skipped\n"));
  EXPECT_THAT(log, HasSubstr("warning: " + root_ + ": 11 of 20 rows skipped as bad\n"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 11);
}

TEST_F(TweetEvalTest, EmptyFilesAndNothingUsable) {
  write("train_text.txt", "");
  EXPECT_EQ(bad(), "$/train_text.txt: the file is empty; give one with rows");
  write("train_text.txt", "a\n");
  write("train_labels.txt", "9\n");
  EXPECT_EQ(bad(with(&ReadOptions::skip_bad_rows, true)), "$/train_text.txt: no usable row; give a file with rows");
  write("train_text.txt",
        "\xff\xfe"
        "a");
  EXPECT_EQ(bad(), "$/train_text.txt: the file is UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)");
}

TEST_F(TweetEvalTest, SplitsAndTheirOtherNames) {
  write("dev_text.txt", "x\n");
  write("dev_labels.txt", "2\n");
  for (const char* name : {"val", "validation", "dev", "valid"})
    EXPECT_THAT(read(with(&ReadOptions::split, name)).labels, ElementsAre(2)) << name;
  EXPECT_TRUE(has_split(root_, "val"));
  EXPECT_FALSE(has_split(root_, "test"));
  EXPECT_EQ(message_of(ErrorKind::not_found, [&] { (void)read(with(&ReadOptions::split, "test")); }),
            "$: no split 'test' as {split}_text.txt with {split}_labels.txt, {split}.csv, .tsv or .jsonl; there is train, val");
  EXPECT_EQ(message_of(ErrorKind::usage, [&] { (void)read(with(&ReadOptions::split, "../x")); }),
            "split '../x' is not a name; use train, val or test");
  EXPECT_EQ(message_of(ErrorKind::not_found, [&] { (void)read("absent"); }), "$/absent: no such file or folder; check --data");
}

TEST_F(TweetEvalTest, TheModelsNamesDecideTheNumbers) {
  const ReadOptions options = with(&ReadOptions::label_names, std::vector<std::string>{"sadness", "joy", "anger"});
  const Dataset data = read(options);
  EXPECT_THAT(data.labels, ElementsAre(2, 1, 1, 0));
  EXPECT_THAT(data.label_names, ElementsAre("sadness", "joy", "anger"));
  EXPECT_EQ(bad(with(&ReadOptions::label_names, std::vector<std::string>{"sadness", "anger"})),
            "$/train_labels.txt:2: the label '1' is not one of 0 sadness, 1 anger; correct it or pass --skip_bad_rows");
}

TEST_F(TweetEvalTest, WithoutMappingTheTrainSplitGivesTheOrder) {
  std::filesystem::remove(path("mapping.txt"));
  write("train_labels.txt", "10\n9\n9\n-1\n");
  write("test_text.txt", "x\n");
  write("test_labels.txt", "10\n");
  EXPECT_THAT(read().label_names, ElementsAre("-1", "9", "10"));
  EXPECT_THAT(read(with(&ReadOptions::split, "test")).labels, ElementsAre(2));
  write("test_labels.txt", "8\n");
  EXPECT_EQ(bad(with(&ReadOptions::split, "test")),
            "$/test_labels.txt:1: the label '8' is not one of 0 -1, 1 9, 2 10; correct it or pass --skip_bad_rows");
}

TEST_F(TweetEvalTest, AFolderOfFoldersIsReadAsOne) {
  std::filesystem::create_directories(path("stance"));
  write("stance/mapping.txt", "0\tnone\n1\tagainst\n");
  write("stance/b/val_text.txt", "b1\nb2\n");
  write("stance/b/val_labels.txt", "0\n1\n");
  write("stance/a/val_text.txt", "a1\n");
  write("stance/a/val_labels.txt", "1\n");
  const Dataset data = read("stance", with(&ReadOptions::split, "val"));
  EXPECT_THAT(data.texts, ElementsAre("a1", "b1", "b2"));
  EXPECT_THAT(data.label_names, ElementsAre("none", "against"));
  EXPECT_EQ(data.where(0), path("stance/a/val_text.txt") + ":1");
  EXPECT_EQ(data.where(2), path("stance/b/val_text.txt") + ":2");
  EXPECT_THAT(read("stance/b", with(&ReadOptions::split, "val")).label_names, ElementsAre("none", "against"));
}

TEST_F(TweetEvalTest, OneFileWithAndWithoutLabels) {
  EXPECT_THAT(read("train_text.txt").labels, ElementsAre(0, 1, 1, 2));
  write("notes.txt", "one\ntwo\n");
  EXPECT_EQ(message_of(ErrorKind::not_found, [&] { (void)read("notes.txt"); }),
            "$/notes.txt: no labels beside it; use a format that has them (TweetEval, CSV, TSV, JSONL)");
  const Dataset data = read("notes.txt", with(&ReadOptions::require_labels, false));
  EXPECT_THAT(data.texts, ElementsAre("one", "two"));
  EXPECT_THAT(data.labels, ElementsAre(-1, -1));
  EXPECT_FALSE(data.has_labels());
  std::filesystem::remove(path("train_labels.txt"));
  EXPECT_EQ(message_of(ErrorKind::not_found, [&] { (void)read(); }), "$/train_text.txt: no labels beside it; add its _labels.txt");
  EXPECT_EQ(read(with(&ReadOptions::require_labels, false)).size(), 4U);
}

TEST_F(TweetEvalTest, NormalizesWhenAsked) {
  write("train_text.txt", "@jo hi\nhttp://x  y\n@\nz\n");
  EXPECT_THAT(read(with(&ReadOptions::normalize, Normalization::timelms)).texts, ElementsAre("@user hi", "http y", "@", "z"));
}

}  // namespace
}  // namespace muster::data
