// CSV and TSV files whose first record names the columns.
#include <algorithm>

#include "core/error.h"
#include "data/content.h"
#include "data/csv.h"
#include "data/labels.h"
#include "data/rows.h"
#include "storage/printable.h"

namespace muster::data {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 50); ++i) text += (i ? ", " : "") + storage::printable(names[i], 60);
  return text + (names.size() > 50 ? ", ..." : "");
}

/// The place of a column; none when it is absent and not required.
std::optional<size_t> column(const std::vector<std::string>& header, const std::string& name, bool required, const char* flag,
                             const std::string& file, int64_t line) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) {
    if (!required) return std::nullopt;
    throw Error(ErrorKind::invalid_argument, "{}:{}: no column '{}' in the header; found: {}; name one with {}", file, line, name,
                joined(header), flag);
  }
  if (std::find(found + 1, header.end(), name) != header.end())
    throw Error(ErrorKind::invalid_argument, "{}:{}: the column '{}' is there twice; rename one", file, line, name);
  return static_cast<size_t>(found - header.begin());
}

}  // namespace

RawRows read_csv_rows(const Source& source, const ReadOptions& options, BadRows& bad) {
  const std::string& file = source.text_file;
  const std::string content = read_content(file, options.max_bytes);
  CsvReader reader(content, source.format == Format::tsv ? '\t' : ',', options.quotes, file);
  std::vector<std::string> header, fields;
  switch (reader.next(header)) {
    case CsvReader::Result::end: throw Error(ErrorKind::invalid_argument, "{}: the file is empty; give one with a header and rows", file);
    case CsvReader::Result::bad:
      throw Error(ErrorKind::invalid_argument, "{}:{}: the header cannot be read: {}", file, reader.line(), reader.reason());
    case CsvReader::Result::record: break;
  }
  for (const std::string& name : header)
    if (const auto problem = text_problem(name))
      throw Error(ErrorKind::invalid_argument, "{}:{}: the header is {}; save the file as UTF-8", file, reader.line(), *problem);
  const size_t text = *column(header, options.text_column, true, "--text_column", file, reader.line());
  const auto label = column(header, options.label_column, options.require_labels, "--label_column", file, reader.line());
  std::optional<size_t> pair;
  if (!options.text_pair_column.empty()) pair = column(header, options.text_pair_column, true, "--text_pair_column", file, reader.line());

  RawRows rows;
  rows.labelled = label.has_value();
  for (CsvReader::Result result = reader.next(fields); result != CsvReader::Result::end; result = reader.next(fields)) {
    const int64_t line = reader.line();
    if (result == CsvReader::Result::bad) {
      bad.report(file, line, reader.reason());
      continue;
    }
    if (fields.size() != header.size()) {
      bad.report(file, line,
                 fmt::format("{} field{} where the header has {}", fields.size(), fields.size() == 1 ? "" : "s", header.size()));
      continue;
    }
    std::optional<std::string> problem = text_problem(fields[text]);
    if (!problem && pair) problem = text_problem(fields[*pair]);
    if (!problem && label) problem = text_problem(fields[*label]);
    std::string name = label ? canonical_label(fields[*label]) : "";
    if (!problem && options.require_labels && name.empty()) problem = "the label is empty";
    if (problem) {
      bad.report(file, line, *problem);
      continue;
    }
    std::string second = pair ? (*pair == text ? fields[text] : std::move(fields[*pair])) : "";
    rows.add(std::move(fields[text]), std::move(second), std::move(name), line);
  }
  return rows;
}

}  // namespace muster::data
