// Labels: mapping files, collected names, and which spelling means which number.
#include "data/labels.h"

#include "written_folder.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::Pair;
using LabelsTest = WrittenFolder;

TEST_F(LabelsTest, MappingHasTwoOrMoreColumns) {
  write("m",
        "\xef\xbb\xbf"
        "1\t\xf0\x9f\x98\x8d\t_smiling_face_\r\n0\t\xe2\x9d\xa4\t_heart_\n\n");
  EXPECT_THAT(read_mapping(path("m")), ElementsAre(Pair(0, "\xe2\x9d\xa4"), Pair(1, "\xf0\x9f\x98\x8d")));
}

TEST_F(LabelsTest, MappingErrorsNameTheLine) {
  const auto error = [&](const std::string& content) {
    write("m", content);
    return message_of(ErrorKind::invalid_argument, [&] { read_mapping(path("m")); });
  };
  EXPECT_EQ(error("0\tjoy\n1 anger\n"), "$/m:2: no tab between number and name; write 'number TAB name'");
  EXPECT_EQ(error("0\tjoy\nx\tanger\n"), "$/m:2: 'x' is not a number; write 'number TAB name'");
  EXPECT_EQ(error("0\tjoy\n0\tanger\n"), "$/m:2: the number 0 is there twice; write 'number TAB name'");
  EXPECT_EQ(error("0\t \n"), "$/m:1: the name is empty or not UTF-8; write 'number TAB name'");
  EXPECT_EQ(error("\n"), "$/m: no labels in it; write 'number TAB name' lines");
  EXPECT_EQ(error(""), "$/m: the file is empty; give one with rows");
}

TEST_F(LabelsTest, CanonicalSpelling) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{" joy ", "joy"},
                                                                                 {"1.0", "1"},
                                                                                 {"-1.00", "-1"},
                                                                                 {"1.", "1"},
                                                                                 {"1.5", "1.5"},
                                                                                 {"a.0", "a.0"},
                                                                                 {".0", ".0"},
                                                                                 {"", ""},
                                                                                 {"v1.0", "v1.0"}})
    EXPECT_EQ(canonical_label(from), to) << from;
}

TEST_F(LabelsTest, CollectedNumbersGoByValueAndNamesByText) {
  EXPECT_THAT(collect_label_names({"10", "9", "", "-1", "9"}, "f"), ElementsAre("-1", "9", "10"));
  EXPECT_THAT(collect_label_names({"b", "10", "9", "B"}, "f"), ElementsAre("10", "9", "B", "b"));
  std::vector<std::string> many(10'001);
  for (size_t i = 0; i < many.size(); ++i) many[i] = std::to_string(i);
  EXPECT_EQ(message_of(ErrorKind::invalid_argument, [&] { collect_label_names(many, "f"); }),
            "f: more than 10000 different labels; check that --label_column names the labels");
}

TEST_F(LabelsTest, NamesAndNumbers) {
  const LabelMap words({"anger", "joy"}, {});
  EXPECT_EQ(words.find("joy"), 1);
  EXPECT_EQ(words.find("0"), 0);
  EXPECT_EQ(words.find("2"), std::nullopt);
  EXPECT_EQ(words.find("-1"), std::nullopt);
  EXPECT_EQ(words.find("Joy"), std::nullopt);
  EXPECT_EQ(words.describe(), "0 anger, 1 joy");
}

TEST_F(LabelsTest, NumbersAsNamesAreNeverPlaces) {
  const LabelMap numbers({"0", "2", "4"}, {});
  EXPECT_EQ(numbers.find("4"), 2);
  EXPECT_EQ(numbers.find("1"), std::nullopt);
}

TEST_F(LabelsTest, AMappingSpeaksForTheDataNotForTheModel) {
  const std::map<int64_t, std::string> data{{0, "negative"}, {1, "neutral"}, {2, "positive"}};
  const LabelMap model({"positive", "negative"}, data);
  EXPECT_EQ(model.find("0"), 1);
  EXPECT_EQ(model.find("2"), 0);
  EXPECT_EQ(model.find("positive"), 0);
  EXPECT_EQ(model.find("1"), std::nullopt);  // neutral, which the model does not have
  const LabelMap generic({"LABEL_0", "LABEL_1", "LABEL_2"}, data);
  EXPECT_EQ(generic.find("2"), 2);
  EXPECT_EQ(generic.find("neutral"), 1);
  EXPECT_EQ(generic.find("LABEL_2"), 2);
  EXPECT_EQ(message_of(ErrorKind::invalid_argument, [] { LabelMap({"a", "a"}, {}); }),
            "the label name 'a' is there twice; names must differ");
}

}  // namespace
}  // namespace muster::data
