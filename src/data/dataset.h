// Labelled texts read from files: TweetEval folders, CSV, TSV, JSONL, plain lines. Turning texts into batches is loader.h.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/normalize.h"

namespace muster::data {

enum class Format { automatic, tweeteval, csv, tsv, jsonl, text };

/// Throws Error(usage) on an unknown name; "auto" is automatic.
Format parse_format(std::string_view name);
std::string_view name_of(Format format);

struct ReadOptions {
  std::string split = "train";        // train | val | test; "validation", "valid" and "dev" are val. Not used when the path is one file
  Format format = Format::automatic;  // by what is there, or by the ending of the file
  std::string text_column = "text";   // column of CSV and TSV, key of JSONL
  std::string text_pair_column;       // empty: single texts
  std::string label_column = "label";
  bool quotes = true;                    // CSV and TSV: a field that opens with '"' ends at its closing quote (RFC 4180)
  bool require_labels = true;            // false: a file without labels gives label -1 to every row
  bool skip_bad_rows = false;            // bad rows are counted and warned about (the first 10 one by one) instead of ending the read
  std::vector<std::string> label_names;  // of the model, in id order; empty: taken from mapping.txt or collected from the train split
  Normalization normalize = Normalization::none;
  uint64_t max_bytes = uint64_t{8} << 30;  // of one file
};

/// Rows in file order. texts, labels (and pairs, when there are any) have one entry a row. A text may be empty.
struct Dataset {
  struct Part {
    std::string file;
    size_t first_row = 0;
  };
  std::vector<std::string> texts;
  std::vector<std::string> pairs;  // empty when there is no second text
  std::vector<int32_t> labels;     // index into label_names; -1 where labels are absent and were not required
  std::vector<int64_t> lines;      // of the text, from 1
  std::vector<Part> parts;         // which file a row came from
  std::vector<std::string> label_names;
  int64_t skipped = 0;  // bad rows left out

  [[nodiscard]] size_t size() const { return texts.size(); }
  /// Whether every row has a label.
  [[nodiscard]] bool has_labels() const;
  /// "train.csv:17", for messages.
  [[nodiscard]] std::string where(size_t row) const;
};

/// Reads one split. `path` is a TweetEval folder ({train,val,test}_{text,labels}.txt with mapping.txt, also a folder of such folders
/// like stance), a folder with {split}.csv|.tsv|.jsonl, or one file (.csv, .tsv, .jsonl, or .txt: one text a line; X_text.txt is read
/// with X_labels.txt beside it).
/// Labels stand as names or numbers. Their order is options.label_names, else mapping.txt, else the distinct labels of the train split:
/// numbers by value, names by text.
/// Lines end at LF or CR LF only; a byte order mark is skipped; blank lines of CSV and JSONL are skipped.
/// Throws Error(invalid_argument) "file:line: reason; what to do" on a bad row, Error(not_found) when the split is not there,
/// Error(too_large). A quote that is never closed and text and label files of different length are errors even when skipping.
Dataset read_dataset(const std::string& path, const ReadOptions& options);

/// Whether read_dataset would find that split. A path that is one file has the train split only.
bool has_split(const std::string& path, std::string_view split, Format format = Format::automatic);

}  // namespace muster::data
