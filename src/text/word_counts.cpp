// A text is first cut into units, each a run of white space and the run of other bytes behind it: no word of any pre-tokenizer here
// crosses from one unit to the next. Units repeat, so each distinct one is normalized and split only once, however often it occurs.
#include "text/word_counts.h"

#include <algorithm>
#include <unordered_map>

#include "core/error.h"

namespace muster::text {

namespace {

constexpr size_t kBlock = size_t{1} << 20;      // of text, for a thread
constexpr size_t kMostUnits = size_t{1} << 26;  // distinct ones of a thread: about 6 GB

struct Hash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using Counts = std::unordered_map<std::string, int64_t, Hash, std::equal_to<>>;

void count(Counts& counts, std::string_view key, int64_t times) {
  const auto found = counts.find(key);
  if (found != counts.end()) {
    found->second += times;
  } else {
    counts.emplace(key, times);
  }
}

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Whether the code point that ends before `end` is white space, so that a run of it may go on.
bool space_before(std::string_view text, size_t begin, size_t end) {
  if (static_cast<unsigned char>(text[end - 1]) < 0x80) return is_ascii_space(text[end - 1]);
  size_t start = end - 1;
  while (start > begin && end - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0u) == 0x80) --start;
  return is_whitespace(decode_utf8(text, start).code);
}

void count_units(Counts& counts, std::string_view text) {
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = begin;
    while (end < text.size() && is_ascii_space(text[end]) && text[end] != '\n') ++end;
    while (end < text.size() && text[end] != '\n' && !(is_ascii_space(text[end]) && !space_before(text, begin, end))) ++end;
    if (end < text.size() && text[end] == '\n') ++end;  // a line keeps its end
    count(counts, text.substr(begin, end - begin), 1);
    begin = end;
  }
}

}  // namespace

struct WordCounts::State {
  const Normalizer& normalizer;
  const PreTokenizer& pre_tokenizer;
  ThreadPool& threads;
  std::vector<Counts> units;  // one a thread
};

WordCounts::WordCounts(const Normalizer& normalizer, const PreTokenizer& pre_tokenizer, ThreadPool& threads)
    : state_(new State{normalizer, pre_tokenizer, threads, std::vector<Counts>(static_cast<size_t>(threads.threads()))}) {}
WordCounts::~WordCounts() = default;

void WordCounts::add(std::string_view text, const std::atomic<bool>* stop) {
  std::vector<std::string_view> blocks;
  while (!text.empty()) {
    size_t end = text.size() <= kBlock ? std::string_view::npos : text.find('\n', kBlock);
    end = end == std::string_view::npos ? text.size() : end + 1;
    blocks.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  state_->threads.parallel_for(static_cast<int64_t>(blocks.size()), [&](int64_t block, int thread) {
    if (stop && *stop) throw Error(ErrorKind::cancelled, "stopped");
    Counts& units = state_->units[static_cast<size_t>(thread)];
    count_units(units, blocks[static_cast<size_t>(block)]);
    if (units.size() > kMostUnits)
      throw Error(ErrorKind::too_large, "more than {} distinct words: train on a sample of the text", kMostUnits);
  });
}

std::vector<CountedWord> WordCounts::words() const {
  Counts words;
  Normalized piece;
  std::vector<Word> split;
  for (const Counts& units : state_->units) {
    for (const auto& [unit, times] : units) {
      const std::string valid = to_valid_utf8(unit);
      piece.assign(valid, 0, valid.size(), false);
      state_->normalizer.apply(piece);
      state_->pre_tokenizer.split(piece, split);
      for (const Word word : split) count(words, std::string_view(piece.text).substr(word.begin, word.end - word.begin), times);
    }
  }
  std::vector<CountedWord> sorted;
  sorted.reserve(words.size());
  for (auto& [word, times] : words) sorted.push_back({word, times});
  std::sort(sorted.begin(), sorted.end(), [](const CountedWord& a, const CountedWord& b) { return a.word < b.word; });
  return sorted;
}

}  // namespace muster::text
