// Plain text as documents of sentences, for pre-training. How they become sequences: prepare.h.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::data {

enum class DocumentBorder { blank_line, file };
/// split: by split_sentences; lines: each line is one.
enum class SentenceBorder { split, lines };

/// The sentences of a piece of text: ends are . ! ? (and closing quotes or brackets after them) before white space and something that can
/// begin a sentence; not after an abbreviation (Mr., Dr., e.g., ...) or a single capital letter. White space inside becomes one blank.
std::vector<std::string> split_sentences(std::string_view text);

/// Hands over the texts of files and folders, in order: a file as a whole, or each row of a table (.csv, .tsv, .jsonl), its text in
/// `column`. A pipe, or "-" for standard input, is one text of 4 GiB at most. A text is there only during the call. Hidden files of folders
/// are left out. Throws Error(not_found|io|invalid_argument) naming the file.
void for_each_text(const std::vector<std::string>& paths, const std::string& column,
                   const std::function<void(std::string_view text, bool is_row)>& take);

using Document = std::vector<std::string>;

/// The documents of the texts that for_each_text finds; a row of a table is one. Empty ones are left out.
std::vector<Document> read_documents(const std::vector<std::string>& paths, DocumentBorder documents, SentenceBorder sentences,
                                     const std::string& column);

}  // namespace muster::data
