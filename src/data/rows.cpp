// What all formats share: bad rows, and the choice of a reader.
#include "data/rows.h"

#include "core/error.h"
#include "core/log.h"
#include "text/unicode.h"

namespace muster::data {

void BadRows::report(const std::string& file, int64_t line, std::string_view reason) {
  constexpr int64_t kShown = 10;
  if (!skip_) throw Error(ErrorKind::invalid_argument, "{}:{}: {}; correct it or pass --skip_bad_rows", file, line, reason);
  if (count_++ < kShown && !quiet_) log_warning("{}:{}: {}: row skipped", file, line, reason);
}

std::optional<std::string> text_problem(std::string_view text) {
  if (text::is_valid_utf8(text)) return std::nullopt;
  size_t position = 0;
  for (text::Decoded code = text::decode_utf8(text, 0); code.valid; code = text::decode_utf8(text, position)) position += code.size;
  return fmt::format("not valid UTF-8 at byte {} (0x{:02x})", position + 1, static_cast<unsigned char>(text[position]));
}

RawRows read_rows(const Source& source, const ReadOptions& options, BadRows& bad) {
  switch (source.format) {
    case Format::tweeteval:
    case Format::text: return read_line_rows(source, options, bad);
    case Format::csv:
    case Format::tsv: return read_csv_rows(source, options, bad);
    case Format::jsonl: return read_jsonl_rows(source, options, bad);
    case Format::automatic: break;
  }
  MUSTER_ASSERT(!"a format");
}

}  // namespace muster::data
