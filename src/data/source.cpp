// Finding the files of a split.
#include <algorithm>
#include <array>
#include <filesystem>

#include "core/error.h"
#include "data/rows.h"
#include "storage/file.h"

namespace muster::data {
namespace {

using storage::is_file;
constexpr std::string_view kTextEnd = "_text.txt";

std::vector<std::string> names_of_split(std::string_view split) {
  for (const std::string_view name : {"val", "validation", "valid", "dev"})
    if (split == name) return {"val", "validation", "valid", "dev"};
  if (split.empty() || split.find('/') != std::string_view::npos)
    throw Error(ErrorKind::usage, "split '{}' is not a name; use train, val or test", split);
  return {std::string(split)};
}

/// TweetEval's three files, from the path of the texts. Stance keeps one mapping.txt above its five folders.
Source tweeteval_source(const std::string& text_file) {
  Source source{Format::tweeteval, text_file, "", ""};
  const std::string labels = text_file.substr(0, text_file.size() - kTextEnd.size()) + "_labels.txt";
  if (is_file(labels)) source.label_file = labels;
  const size_t slash = text_file.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : text_file.substr(0, slash);
  for (const std::string& mapping : {folder + "/mapping.txt", folder + "/../mapping.txt"})
    if (source.mapping_file.empty() && is_file(mapping)) source.mapping_file = mapping;
  return source;
}

Source file_source(const std::string& file, Format format) {
  if (format == Format::automatic) {
    const std::string name = file.substr(file.find_last_of('/') + 1);
    if (name.ends_with(".csv"))
      format = Format::csv;
    else if (name.ends_with(".tsv"))
      format = Format::tsv;
    else if (name.ends_with(".jsonl") || name.ends_with(".ndjson"))
      format = Format::jsonl;
    else if (name.ends_with(kTextEnd) && is_file(tweeteval_source(file).label_file))
      format = Format::tweeteval;
    else if (name.ends_with(".txt"))
      format = Format::text;
    else
      throw Error(ErrorKind::invalid_argument, "{}: the ending says no format; name it with --format csv|tsv|jsonl|tweeteval|text", file);
  }
  if (format == Format::tweeteval) {
    if (!file.ends_with(kTextEnd))
      throw Error(ErrorKind::invalid_argument, "{}: TweetEval texts are named like train_text.txt; give such a file or its folder", file);
    return tweeteval_source(file);
  }
  return {format, file, format == Format::text ? "" : file, ""};
}

bool wanted(Format asked, Format format) { return asked == format || (asked == Format::automatic && format != Format::text); }

/// The files of the split that lie directly in a folder.
std::vector<Source> sources_in(const std::string& folder, const std::vector<std::string>& names, Format asked) {
  struct Ending {
    Format format;
    std::string_view text;
  };
  constexpr std::array<Ending, 5> kEndings{
      {{Format::tweeteval, kTextEnd}, {Format::csv, ".csv"}, {Format::tsv, ".tsv"}, {Format::jsonl, ".jsonl"}, {Format::text, ".txt"}}};
  std::vector<Source> found;
  for (const Ending& ending : kEndings)
    for (const std::string& name : names) {
      const std::string file = folder + "/" + name + std::string(ending.text);
      if (wanted(asked, ending.format) && is_file(file)) found.push_back(file_source(file, ending.format));
    }
  return found;
}

}  // namespace

std::vector<Source> find_sources(const std::string& path, std::string_view split, Format format) {
  if (!storage::is_folder(path)) {
    if (!std::filesystem::exists(path)) throw Error(ErrorKind::not_found, "{}: no such file or folder; check --data", path);
    return {file_source(path, format)};
  }
  const std::vector<std::string> names = names_of_split(split);
  std::vector<Source> found = sources_in(path, names, format);
  if (found.size() > 1)
    throw Error(ErrorKind::invalid_argument, "{}: both {} and {} have the split '{}'; name one of them, or choose with --format", path,
                found[0].text_file, found[1].text_file, split);
  if (!found.empty() || !wanted(format, Format::tweeteval)) return found;
  std::vector<std::string> folders;
  std::error_code error;
  for (std::filesystem::directory_iterator item(path, error), end; !error && item != end; item.increment(error))
    if (item->is_directory(error)) folders.push_back(item->path().string());
  std::sort(folders.begin(), folders.end());
  for (const std::string& folder : folders)
    for (Source& source : sources_in(folder, names, Format::tweeteval)) found.push_back(std::move(source));
  return found;
}

}  // namespace muster::data
