// Word splitting of BERT and of GPT-2 (ByteLevel); see pre_tokenizer.h.
#include "text/pre_tokenizer.h"

#include <array>

namespace muster::text {

namespace {

enum class Class : uint8_t { letter, number, other, space };

constexpr std::array<Class, 128> kAsciiClass = [] {
  std::array<Class, 128> table{};
  for (size_t c = 0; c < table.size(); ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool number = c >= '0' && c <= '9';
    const bool space = c == ' ' || (c >= 9 && c <= 13);
    table[c] = letter ? Class::letter : number ? Class::number : space ? Class::space : Class::other;
  }
  return table;
}();

struct Classed {
  Class kind;
  uint8_t size;
};

Classed class_at(std::string_view text, size_t position) {
  const auto lead = static_cast<unsigned char>(text[position]);
  if (lead < 0x80) return {kAsciiClass[lead], 1};
  const Decoded step = decode_valid(text, position);
  if (is_letter(step.code)) return {Class::letter, step.size};
  if (is_number(step.code)) return {Class::number, step.size};
  if (is_whitespace(step.code)) return {Class::space, step.size};
  return {Class::other, step.size};
}

size_t run_end(std::string_view text, size_t position, size_t end, Class kind) {
  while (position < end) {
    const Classed next = class_at(text, position);
    if (next.kind != kind) break;
    position += next.size;
  }
  return position;
}

size_t contraction(std::string_view text, size_t begin, size_t end) {
  for (const std::string_view form : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (form.size() <= end - begin && text.substr(begin, form.size()) == form) return form.size();
  }
  return 0;
}

void split_whitespace(std::string_view text, Word word, bool isolate_punctuation, std::vector<Word>& out) {
  size_t start = word.begin;
  const auto close = [&](size_t end) {
    if (start < end) out.push_back({start, end});
  };
  for (size_t i = word.begin; i < word.end;) {
    const Decoded step = decode_valid(text, i);
    const size_t next = i + step.size;
    if (is_whitespace(step.code)) {
      close(i);
      start = next;
    } else if (isolate_punctuation && is_bert_punctuation(step.code)) {
      close(i);
      out.push_back({i, next});
      start = next;
    }
    i = next;
  }
  close(word.end);
}

void split_gpt2(std::string_view text, Word word, std::vector<Word>& out) {
  for (size_t i = word.begin; i < word.end;) {
    const size_t size = gpt2_match(text, i, word.end);
    out.push_back({i, i + size});
    i += size;
  }
}

}  // namespace

size_t gpt2_match(std::string_view text, size_t begin, size_t end) {
  if (text[begin] == '\'') {
    const size_t size = contraction(text, begin, end);
    if (size > 0) return size;
  }
  const Classed first = class_at(text, begin);
  if (first.kind != Class::space) return run_end(text, begin, end, first.kind) - begin;
  if (text[begin] == ' ' && begin + 1 < end) {
    const Classed second = class_at(text, begin + 1);
    if (second.kind != Class::space) return run_end(text, begin + 1, end, second.kind) - begin;
  }
  // \s+(?!\S): all of the run at the end of the text, else all but its last code point, which goes with what follows.
  const size_t stop = run_end(text, begin, end, Class::space);
  if (stop == end) return stop - begin;
  const size_t last = previous(text, stop);
  return (last > begin ? last : stop) - begin;
}

void PreTokenizer::split(Normalized& piece, std::vector<Word>& words) const {
  words.clear();
  if (piece.text.empty()) return;
  if (steps_.size() == 1 && add_prefix_space() && piece.text.front() != ' ') piece.prepend_space();
  words.push_back({0, piece.text.size()});
  std::vector<Word> previous_words;
  for (const PreTokenizerStep step : steps_) {
    previous_words.swap(words);
    words.clear();
    for (const Word word : previous_words) {
      switch (step) {
        case PreTokenizerStep::bert: split_whitespace(piece.text, word, true, words); break;
        case PreTokenizerStep::whitespace_split: split_whitespace(piece.text, word, false, words); break;
        case PreTokenizerStep::byte_level:
          if (byte_level_.use_regex) {
            split_gpt2(piece.text, word, words);
          } else {
            words.push_back(word);
          }
          break;
      }
    }
  }
}

}  // namespace muster::text
