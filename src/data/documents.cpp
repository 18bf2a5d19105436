#include "data/documents.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "core/error.h"
#include "data/dataset.h"
#include "storage/file.h"

namespace muster::data {
namespace {

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v'; }
bool upper(char c) { return c >= 'A' && c <= 'Z'; }

/// Whether `word`, which ends with a full stop, is one that seldom ends a sentence.
bool abbreviation(std::string_view word) {
  static constexpr std::array<std::string_view, 33> kKnown{"mr.",   "mrs.", "ms.",     "dr.",   "prof.", "st.",  "sr.",  "jr.",  "rev.",
                                                           "hon.",  "gen.", "col.",    "capt.", "lt.",   "sgt.", "gov.", "sen.", "rep.",
                                                           "pres.", "vs.",  "e.g.",    "i.e.",  "etc.",  "cf.",  "no.",  "vol.", "fig.",
                                                           "pp.",   "ch.",  "messrs.", "mt.",   "co.",   "inc."};
  while (!word.empty() && (word.front() == '(' || word.front() == '"' || word.front() == '\'')) word.remove_prefix(1);
  if (word.size() == 2 && upper(word[0])) return true;  // an initial
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return upper(c) ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::find(kKnown.begin(), kKnown.end(), lower) != kKnown.end();
}

/// Whether a sentence can begin with this byte: a capital, a digit, a quote or bracket, or the first of a character beyond ASCII.
bool can_begin(char c) {
  return upper(c) || (c >= '0' && c <= '9') || c == '"' || c == '\'' || c == '(' || c == '[' || (static_cast<unsigned char>(c) & 0x80);
}

void add_words(std::string& sentence, std::string_view word) {
  if (!sentence.empty()) sentence += ' ';
  sentence += word;
}

/// The paragraphs of a text file, as documents.
void add_text(std::vector<Document>& documents, std::string_view text, DocumentBorder border, SentenceBorder sentences) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Document document;
  std::string paragraph;
  const auto end_paragraph = [&] {
    for (std::string& s : split_sentences(paragraph)) document.push_back(std::move(s));
    paragraph.clear();
  };
  const auto end_document = [&] {
    end_paragraph();
    if (!document.empty()) documents.push_back(std::move(document));
    document.clear();
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && blank(line.back())) line.remove_suffix(1);
    while (!line.empty() && blank(line.front())) line.remove_prefix(1);
    if (line.empty()) {
      border == DocumentBorder::blank_line ? end_document() : end_paragraph();
    } else if (sentences == SentenceBorder::lines) {
      document.emplace_back(line);
    } else {
      add_words(paragraph, line);
    }
  }
  end_document();
}

}  // namespace

std::vector<std::string> split_sentences(std::string_view text) {
  std::vector<std::string> sentences;
  std::string sentence;
  for (size_t at = 0; at < text.size();) {
    while (at < text.size() && blank(text[at])) ++at;
    size_t end = at;
    while (end < text.size() && !blank(text[end])) ++end;
    if (end == at) break;
    const std::string_view word = text.substr(at, end - at);
    add_words(sentence, word);
    at = end;
    std::string_view core = word;
    while (!core.empty() && (core.back() == '"' || core.back() == '\'' || core.back() == ')' || core.back() == ']')) core.remove_suffix(1);
    if (core.empty() || (core.back() != '.' && core.back() != '!' && core.back() != '?')) continue;
    if (core.back() == '.' && abbreviation(core)) continue;
    size_t next = at;
    while (next < text.size() && blank(text[next])) ++next;
    if (next < text.size() && !can_begin(text[next])) continue;
    sentences.push_back(std::move(sentence));
    sentence.clear();
  }
  if (!sentence.empty()) sentences.push_back(std::move(sentence));
  return sentences;
}

constexpr uint64_t kMostPiped = uint64_t{4} << 30;  // of a pipe, which is held in memory

void for_each_text(const std::vector<std::string>& paths, const std::string& column,
                   const std::function<void(std::string_view text, bool is_row)>& take) {
  const auto take_file = [&](const std::string& file) {
    const std::string ending = std::filesystem::path(file).extension().string();
    if (ending == ".csv" || ending == ".tsv" || ending == ".jsonl" || ending == ".ndjson") {
      ReadOptions options;
      options.text_column = column, options.require_labels = false;
      for (const std::string& text : read_dataset(file, options).texts) take(text, true);
      return;
    }
    const storage::MappedFile mapped(file);
    take({reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()}, false);
  };
  for (const std::string& path : paths) {
    if (path == "-" || std::filesystem::is_fifo(path) || std::filesystem::is_character_file(path)) {
      take(storage::read_file(path == "-" ? "/dev/stdin" : path, kMostPiped), false);
      continue;
    }
    if (!storage::is_folder(path)) {
      if (!storage::is_file(path)) throw Error(ErrorKind::not_found, "{}: no such file or folder of text", path);
      take_file(path);
      continue;
    }
    for (const storage::TreeEntry& entry : storage::list_tree(path))
      if (entry.kind == storage::TreeEntry::Kind::file && !std::filesystem::path(entry.name).filename().string().starts_with("."))
        take_file(path + "/" + entry.name);
  }
}

std::vector<Document> read_documents(const std::vector<std::string>& paths, DocumentBorder border, SentenceBorder sentences,
                                     const std::string& column) {
  std::vector<Document> documents;
  for_each_text(paths, column,
                [&](std::string_view text, bool is_row) { add_text(documents, text, is_row ? DocumentBorder::file : border, sentences); });
  return documents;
}

}  // namespace muster::data
