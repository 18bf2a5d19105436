// Plain text as documents of sentences, for pre-training. How they become sequences: prepare.h.
#pragma once
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

using Document = std::vector<std::string>;

/// The documents of files and folders of text (.txt, or any other ending but .csv, .tsv, .jsonl: each row of these is a document, its text
/// in `column`). Empty ones are left out. Throws Error(not_found|io|invalid_argument) naming the file.
std::vector<Document> read_documents(const std::vector<std::string>& paths, DocumentBorder documents, SentenceBorder sentences,
                                     const std::string& column);

}  // namespace muster::data
