// Mutated files of every format: rows or an Error, never anything else, and rows that agree with each other.
#include "core/log.h"
#include "core/philox.h"
#include "written_folder.h"

namespace muster::data {
namespace {

class DatasetFuzz : public WrittenFolder {
 protected:
  DatasetFuzz() { set_log_level(LogLevel::error); }
  ~DatasetFuzz() override { set_log_level(LogLevel::info); }

  void fuzz(const std::string& name, const std::string& valid, std::string_view tokens) const {
    Philox random(17);
    const auto below = [&](size_t n) { return static_cast<size_t>(random.below(static_cast<uint32_t>(n))); };
    int read_well = 0, refused = 0;
    for (int round = 0; round < 1500; ++round) {
      std::string content = valid;
      for (size_t change = 0, changes = below(6); change < changes && content.size() > 1; ++change) {
        const size_t at = below(content.size());
        switch (below(4)) {
          case 0: content[at] = static_cast<char>(random.next()); break;
          case 1: content.insert(at, 1, tokens[below(tokens.size())]); break;
          case 2: content.erase(at, 1 + below(5)); break;
          default: content[at] = tokens[below(tokens.size())]; break;
        }
      }
      write(name, content);
      try {
        ReadOptions options;
        options.skip_bad_rows = below(2) == 0;
        options.require_labels = below(4) != 0;
        options.quotes = below(4) != 0;
        const Dataset data = read_dataset(path(name), options);
        ASSERT_EQ(data.labels.size(), data.size());
        ASSERT_EQ(data.lines.size(), data.size());
        for (const int32_t label : data.labels) ASSERT_TRUE(label >= -1 && label < static_cast<int32_t>(data.label_names.size()));
        for (size_t i = 1; i < data.size(); ++i) ASSERT_LT(data.lines[i - 1], data.lines[i]);
        ++read_well;
      } catch (const Error& error) {
        ASSERT_EQ(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::invalid_argument)) << error.what();
        ASSERT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
        ++refused;
      }
    }
    EXPECT_GT(read_well, 100) << name;
    EXPECT_GT(refused, 100) << name;
  }
};

TEST_F(DatasetFuzz, Csv) {
  fuzz("x.csv", "id,text,label\n1,plain,neg\n2,\"quoted, \"\"twice\"\"\nüber\",pos\r\n3,😀,neg\n",
       std::string_view("\"\",,\n\r\0\xff\x80t", 10));
}
TEST_F(DatasetFuzz, Tsv) {
  fuzz("x.tsv", "text\tlabel\nplain\t1\n\"q\t\"\t2\r\n😀\t1.0\n", std::string_view("\"\"\t\t\n\r\0\xff\x80t", 10));
}
TEST_F(DatasetFuzz, Jsonl) {
  fuzz("x.jsonl",
       "{\"text\":\"plain\",\"label\":1}\n{\"text\":\"\\u00fc \\\"x\\\" 😀\",\"label\":\"2\"}\r\n{\"label\":2.0,\"text\":\"\"}\n",
       std::string_view("\"{}[]:,\\u\n\r\0\xff\x80"
                        "e-1",
                        17));
}
TEST_F(DatasetFuzz, TweetEval) {
  write("x_labels.txt", "0\n1\n0\n");
  fuzz("x_text.txt", "one\ntwo 😀\r\nthree\n", std::string_view("\n\n\r\0\xff\x80t", 7));
}

}  // namespace
}  // namespace muster::data
