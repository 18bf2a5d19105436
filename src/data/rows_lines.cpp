// One text a line; TweetEval has one label a line in a second file.
#include "core/error.h"
#include "data/content.h"
#include "data/labels.h"
#include "data/rows.h"

namespace muster::data {
namespace {

std::vector<std::string_view> lines_of(std::string_view content) {
  std::vector<std::string_view> result;
  LineReader lines(content);
  for (std::string_view line; lines.next(line);) result.push_back(line);
  return result;
}

}  // namespace

RawRows read_line_rows(const Source& source, const ReadOptions& options, BadRows& bad) {
  const std::string text_content = read_content(source.text_file, options.max_bytes);
  const std::vector<std::string_view> texts = lines_of(text_content);
  RawRows rows;
  rows.labelled = !source.label_file.empty();
  std::string label_content;
  std::vector<std::string_view> labels;
  if (rows.labelled) {
    label_content = read_content(source.label_file, options.max_bytes);
    labels = lines_of(label_content);
    while (labels.size() > texts.size() && trimmed(labels.back()).empty()) labels.pop_back();  // blank lines at the end: no label is blank
    if (labels.size() != texts.size())
      throw Error(
          ErrorKind::invalid_argument,
          "{}:{}: {} has {} texts but {} has {} labels; this line is the first without a partner, so the files do not belong together",
          texts.size() > labels.size() ? source.text_file : source.label_file, std::min(texts.size(), labels.size()) + 1, source.text_file,
          texts.size(), source.label_file, labels.size());
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto line = static_cast<int64_t>(i) + 1;
    if (const auto problem = text_problem(texts[i])) {
      bad.report(source.text_file, line, *problem);
      continue;
    }
    std::string label = rows.labelled ? canonical_label(labels[i]) : "";
    if (const auto problem = text_problem(label)) {
      bad.report(source.label_file, line, *problem);
      continue;
    }
    if (rows.labelled && label.empty()) {
      bad.report(source.label_file, line, "the label is empty");
      continue;
    }
    rows.add(std::string(texts[i]), "", std::move(label), line);
  }
  return rows;
}

}  // namespace muster::data
