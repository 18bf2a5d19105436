#include "data/content.h"

#include "core/error.h"
#include "storage/file.h"

namespace muster::data {

std::string read_content(const std::string& file, uint64_t max_bytes) {
  std::string content = storage::read_file(file, max_bytes);
  if (content.starts_with("\xff\xfe") || content.starts_with("\xfe\xff"))
    throw Error(ErrorKind::invalid_argument, "{}: the file is UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)", file);
  if (content.starts_with("\xef\xbb\xbf")) content.erase(0, 3);
  if (content.empty()) throw Error(ErrorKind::invalid_argument, "{}: the file is empty; give one with rows", file);
  return content;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace muster::data
