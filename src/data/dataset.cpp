// From files to a dataset: find the split, read its rows, fix the order of the labels, number them.
#include "data/dataset.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/error.h"
#include "core/log.h"
#include "data/labels.h"
#include "data/rows.h"
#include "storage/printable.h"

namespace muster::data {
namespace {

struct FormatName {
  std::string_view name;
  Format format;
};
constexpr std::array<FormatName, 6> kFormats{{{"auto", Format::automatic},
                                              {"tweeteval", Format::tweeteval},
                                              {"csv", Format::csv},
                                              {"tsv", Format::tsv},
                                              {"jsonl", Format::jsonl},
                                              {"text", Format::text}}};

struct Part {
  Source source;
  RawRows rows;
};

std::vector<Part> read_parts(const std::vector<Source>& sources, const ReadOptions& options, BadRows& bad) {
  std::vector<Part> parts;
  for (const Source& source : sources) parts.push_back({source, read_rows(source, options, bad)});
  return parts;
}

std::vector<std::string> collect(const std::vector<Part>& parts) {
  std::vector<std::string> all;
  for (const Part& part : parts) all.insert(all.end(), part.rows.labels.begin(), part.rows.labels.end());
  return collect_label_names(all, parts.front().source.label_file);
}

std::string splits_there(const std::string& path, Format format) {
  std::string text;
  for (const char* split : {"train", "val", "test"})
    if (!find_sources(path, split, format).empty()) text += std::string(text.empty() ? "" : ", ") + split;
  return text.empty() ? "no split at all" : text;
}

/// The order of the labels: the model's, else the mapping's, else that of the train split, so that every split of a folder agrees.
std::vector<std::string> names_for(const std::string& path, const ReadOptions& options, const std::map<int64_t, std::string>& mapping,
                                   const std::vector<Part>& parts) {
  if (!options.label_names.empty()) return options.label_names;
  std::vector<std::string> names;
  for (const auto& [id, name] : mapping) names.push_back(name);
  if (!names.empty()) return names;
  const std::vector<Source> train = find_sources(path, "train", options.format);
  if (train.empty() || train.front().text_file == parts.front().source.text_file) return collect(parts);
  BadRows quiet(options.skip_bad_rows, true);
  return collect(read_parts(train, options, quiet));
}

/// Numbers the labels of a part and moves its rows into the dataset.
void append(Part&& part, const LabelMap& labels, const ReadOptions& options, BadRows& bad, Dataset& dataset) {
  RawRows& rows = part.rows;
  dataset.parts.push_back({part.source.text_file, dataset.size()});
  for (size_t i = 0; i < rows.texts.size(); ++i) {
    std::optional<int32_t> number = -1;
    if (!rows.labels[i].empty()) number = labels.find(rows.labels[i]);
    if (!number) {
      bad.report(part.source.label_file, rows.lines[i],
                 fmt::format("the label '{}' is not one of {}", storage::printable(rows.labels[i], 60), labels.describe()));
      continue;
    }
    dataset.labels.push_back(*number);
    dataset.lines.push_back(rows.lines[i]);
    dataset.texts.push_back(options.normalize == Normalization::none ? std::move(rows.texts[i])
                                                                     : normalize_tweet(rows.texts[i], options.normalize));
    if (!options.text_pair_column.empty())
      dataset.pairs.push_back(options.normalize == Normalization::none ? std::move(rows.pairs[i])
                                                                       : normalize_tweet(rows.pairs[i], options.normalize));
  }
}

}  // namespace

Format parse_format(std::string_view name) {
  for (const FormatName& known : kFormats)
    if (known.name == name) return known.format;
  throw Error(ErrorKind::usage, "unknown data format '{}'; use auto, tweeteval, csv, tsv, jsonl or text", name);
}

std::string_view name_of(Format format) {
  return std::find_if(kFormats.begin(), kFormats.end(), [&](const FormatName& known) { return known.format == format; })->name;
}

std::string Dataset::where(size_t row) const {
  const auto part = std::upper_bound(parts.begin(), parts.end(), row, [](size_t value, const Part& p) { return value < p.first_row; });
  return part == parts.begin() || row >= lines.size() ? fmt::format("row {}", row) : fmt::format("{}:{}", (part - 1)->file, lines[row]);
}

bool Dataset::has_labels() const {
  return !labels.empty() && std::all_of(labels.begin(), labels.end(), [](int32_t label) { return label >= 0; });
}

Dataset read_dataset(const std::string& path, const ReadOptions& options) {
  const std::vector<Source> sources = find_sources(path, options.split, options.format);
  if (sources.empty() && ::access(path.c_str(), X_OK) != 0)
    throw Error(ErrorKind::io, "{}: cannot enter the folder: {}; check its permissions", path, errno_text(errno));
  if (sources.empty())
    throw Error(ErrorKind::not_found, "{}: no split '{}' as {}; there is {}", path, options.split,
                options.format == Format::automatic ? "{split}_text.txt with {split}_labels.txt, {split}.csv, .tsv or .jsonl"
                                                    : name_of(options.format),
                splits_there(path, options.format));
  for (const Source& source : sources) {
    const bool pairs = source.format != Format::tweeteval && source.format != Format::text;
    if (options.require_labels && source.label_file.empty())
      throw Error(ErrorKind::not_found, "{}: no labels beside it; {}", source.text_file,
                  source.format == Format::tweeteval ? "add its _labels.txt" : "use a format that has them (TweetEval, CSV, TSV, JSONL)");
    if (!options.text_pair_column.empty() && !pairs)
      throw Error(ErrorKind::invalid_argument, "{}: plain lines have no column '{}'; use CSV, TSV or JSONL for pairs", source.text_file,
                  options.text_pair_column);
  }
  BadRows bad(options.skip_bad_rows, false);
  std::vector<Part> parts = read_parts(sources, options, bad);

  Dataset dataset;
  const bool labelled = std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.rows.labelled; });
  const std::map<int64_t, std::string> mapping =
      labelled && !sources.front().mapping_file.empty() ? read_mapping(sources.front().mapping_file) : std::map<int64_t, std::string>{};
  dataset.label_names = labelled ? names_for(path, options, mapping, parts) : options.label_names;
  const LabelMap labels(dataset.label_names, mapping);
  for (Part& part : parts) append(std::move(part), labels, options, bad, dataset);

  dataset.skipped = bad.count();
  if (dataset.skipped > 0)
    log_warning("{}: {} of {} rows skipped as bad", path, dataset.skipped, dataset.skipped + static_cast<int64_t>(dataset.size()));
  if (dataset.texts.empty())
    throw Error(ErrorKind::invalid_argument, "{}: no usable row; give a file with rows", sources.front().text_file);
  return dataset;
}

bool has_split(const std::string& path, std::string_view split, Format format) {
  const std::vector<Source> sources = find_sources(path, split, format);
  if (sources.empty()) return false;
  return split == "train" || sources.front().text_file != path;
}

}  // namespace muster::data
