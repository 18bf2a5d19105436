// A text file in memory, and its lines. What the lines mean is each format's file.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::data {

/// The file without its UTF-8 byte order mark. Throws Error(not_found|io|too_large), and Error(invalid_argument) when it is empty or
/// UTF-16.
std::string read_content(const std::string& file, uint64_t max_bytes);

/// Lines end at LF or CR LF and nowhere else: U+0085, U+2028, vertical tab, form feed and a lone CR belong to the text.
/// The end of the content ends a last line too; an LF at the very end does not open another.
class LineReader {
 public:
  explicit LineReader(std::string_view content) : rest_(content) {}
  bool next(std::string_view& line) {
    if (rest_.empty()) return false;
    const size_t end = rest_.find('\n');
    line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    ++number_;
    return true;
  }
  /// Of the line last given, from 1.
  [[nodiscard]] int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  int64_t number_ = 0;
};

/// Without ASCII white space at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace muster::data
