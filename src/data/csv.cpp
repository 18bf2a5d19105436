#include "data/csv.h"

#include <algorithm>

#include "core/error.h"

namespace muster::data {

bool CsvReader::at_line_end(size_t position) const {
  return position >= content_.size() || content_[position] == '\n' ||
         (content_[position] == '\r' && position + 1 < content_.size() && content_[position + 1] == '\n') ||
         (content_[position] == '\r' && position + 1 == content_.size());
}

bool CsvReader::skip_line_end() {
  if (!at_line_end(position_)) return false;
  while (position_ < content_.size() && content_[position_] == '\r') ++position_;
  if (position_ < content_.size()) {
    ++position_;
    ++line_;
  }
  return true;
}

/// Behind the opening quote. False, with a reason, when the closing one is followed by more text.
bool CsvReader::read_quoted(std::string& field) {
  const int64_t opened = line_;
  for (;;) {
    const size_t quote = content_.find('"', position_);
    if (quote == std::string_view::npos)
      throw Error(ErrorKind::invalid_argument,
                  "{}:{}: a quote opens here and is never closed; close it, or write \" inside a text as \"\" and the text in quotes",
                  file_, opened);
    field.append(content_, position_, quote - position_);
    line_ +=
        std::count(content_.begin() + static_cast<std::ptrdiff_t>(position_), content_.begin() + static_cast<std::ptrdiff_t>(quote), '\n');
    position_ = quote + 1;
    if (position_ < content_.size() && content_[position_] == '"') {
      field += '"';
      ++position_;
      continue;
    }
    if (at_line_end(position_) || content_[position_] == delimiter_) return true;
    reason_ = line_ == opened
                  ? "text follows the closing quote of a field; write \" inside quotes as \"\""
                  : fmt::format("the quote that opens here closes on line {} with text behind it; write \" inside quotes as \"\"", line_);
    return false;
  }
}

CsvReader::Result CsvReader::next(std::vector<std::string>& fields) {
  while (position_ < content_.size() && skip_line_end()) {
  }
  fields.clear();
  start_line_ = line_;
  if (position_ >= content_.size()) return Result::end;
  const size_t start = position_;
  for (;;) {
    std::string& field = fields.emplace_back();
    if (quotes_ && position_ < content_.size() && content_[position_] == '"') {
      ++position_;
      if (!read_quoted(field)) {
        const size_t end = content_.find('\n', start);
        position_ = end == std::string_view::npos ? content_.size() : end + 1;
        line_ = start_line_ + (end == std::string_view::npos ? 0 : 1);
        return Result::bad;
      }
    } else {
      const size_t begin = position_;
      while (!at_line_end(position_) && content_[position_] != delimiter_) ++position_;
      field.assign(content_, begin, position_ - begin);
    }
    if (skip_line_end()) return Result::record;
    ++position_;  // the delimiter
  }
}

}  // namespace muster::data
