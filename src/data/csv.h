// Records of comma- or tab-separated values (RFC 4180): quoted fields may hold delimiters, line ends and doubled quotes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::data {

class CsvReader {
 public:
  enum class Result { record, bad, end };

  /// A quote counts only at the start of a field, and not at all when `quotes` is false. `file` is for messages; content must outlive the
  /// reader.
  CsvReader(std::string_view content, char delimiter, bool quotes, std::string file)
      : content_(content), delimiter_(delimiter), quotes_(quotes), file_(std::move(file)) {}

  /// The next record that is not a blank line. bad: reason() says why, and the next call goes on behind the line where it started.
  /// Throws Error(invalid_argument) naming the line where a quote opens that is never closed.
  Result next(std::vector<std::string>& fields);
  /// Where the record last given starts, from 1.
  [[nodiscard]] int64_t line() const { return start_line_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  bool read_quoted(std::string& field);
  bool at_line_end(size_t position) const;
  bool skip_line_end();

  std::string_view content_;
  char delimiter_;
  bool quotes_;
  std::string file_, reason_;
  size_t position_ = 0;
  int64_t line_ = 1, start_line_ = 0;
};

}  // namespace muster::data
