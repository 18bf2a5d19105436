// Rows as a file has them, labels still as text, and what happens to bad ones. Which label is which number: labels.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace muster::data {

/// One file of a split (or two: TweetEval keeps the labels in a file of their own).
struct Source {
  Format format = Format::text;
  std::string text_file;
  std::string label_file;    // the same as text_file except for TweetEval; empty: there are no labels
  std::string mapping_file;  // TweetEval's mapping.txt; empty when there is none
};

/// The files of a split, none when it is not there. Throws Error(not_found) when the path itself is not there and
/// Error(invalid_argument) when more than one format has the split.
std::vector<Source> find_sources(const std::string& path, std::string_view split, Format format);

/// One entry a row. labels[i] is "" where the row has none.
struct RawRows {
  std::vector<std::string> texts, pairs, labels;
  std::vector<int64_t> lines;
  bool labelled = false;  // the file has labels at all

  void add(std::string text, std::string pair, std::string label, int64_t line) {
    texts.push_back(std::move(text));
    pairs.push_back(std::move(pair));
    labels.push_back(std::move(label));
    lines.push_back(line);
  }
};

/// A bad row ends the read, or is counted when rows may be skipped; the first ten are warned about one by one.
class BadRows {
 public:
  BadRows(bool skip, bool quiet) : skip_(skip), quiet_(quiet) {}
  /// Throws Error(invalid_argument) "file:line: reason; correct it ..." unless rows may be skipped.
  void report(const std::string& file, int64_t line, std::string_view reason);
  [[nodiscard]] int64_t count() const { return count_; }

 private:
  bool skip_, quiet_;
  int64_t count_ = 0;
};

/// Why a text cannot be taken, if it cannot: it is not UTF-8.
std::optional<std::string> text_problem(std::string_view text);

RawRows read_rows(const Source& source, const ReadOptions& options, BadRows& bad);
RawRows read_line_rows(const Source& source, const ReadOptions& options, BadRows& bad);  // TweetEval and plain text
RawRows read_csv_rows(const Source& source, const ReadOptions& options, BadRows& bad);   // CSV and TSV
RawRows read_jsonl_rows(const Source& source, const ReadOptions& options, BadRows& bad);

}  // namespace muster::data
