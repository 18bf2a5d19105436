// Golden values of the Rust tokenizers library: how the files of tests/data/text are read and compared.
// tools/text/make_goldens.py writes them.
//   lines.txt       the texts, one a line: \\ is a backslash, \xHH a byte
//   NAME.golden     one line a text: IDS|REST. IDS: the ids, or a digest of them; REST: a digest of offsets and token strings
//   NAME.pairs      IDS|REST|first second max_length: line numbers of a pair (second -1: a single text), 0 = not cut;
//                   REST has the type ids and the special tokens mask as well
//   variants.json   [{name, base, patch}]: NAME's tokenizer.json is BASE.json with a JSON merge patch (RFC 7386)
// A digest is FNV-1a over 32-bit words, folded to 32 bits, its last 4 or 8 hex digits.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace muster::text::golden {

inline std::vector<std::string> read_lines(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + file.string());
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline std::string unescape(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      out.push_back(line[i]);
    } else if (line[i + 1] == '\\') {
      out.push_back('\\');
      ++i;
    } else {
      out.push_back(static_cast<char>(std::stoi(std::string(line.substr(i + 2, 2)), nullptr, 16)));
      i += 3;
    }
  }
  return out;
}

inline std::vector<std::string> read_texts(const std::filesystem::path& file) {
  std::vector<std::string> texts = read_lines(file);
  for (std::string& text : texts) text = unescape(text);
  return texts;
}

class Digest {
 public:
  void add(uint64_t word) { hash_ = (hash_ ^ word) * 0x100000001B3u; }
  [[nodiscard]] std::string hex() const {
    std::ostringstream out;
    out << std::hex << (uint64_t{1} << 32 | ((hash_ >> 32) ^ (hash_ & 0xFFFFFFFFu)));
    return out.str().substr(1);
  }

 private:
  uint64_t hash_ = 0xCBF29CE484222325u;
};

inline std::string ids_digest(const Encoding& encoding) {
  Digest digest;
  for (const int32_t id : encoding.ids) digest.add(static_cast<uint64_t>(id));
  return digest.hex();
}

/// Offsets in code points: those of the second text are counted in the second text.
inline std::vector<Offsets> char_offsets_of(const Encoding& encoding, std::string_view first, std::string_view second) {
  std::vector<Offsets> out;
  for (const uint8_t side : {uint8_t{0}, uint8_t{1}}) {
    std::vector<Offsets> mine;
    for (size_t i = 0; i < encoding.offsets.size(); ++i) {
      if (encoding.text_index[i] == side) mine.push_back(encoding.offsets[i]);
    }
    const std::vector<Offsets> chars = char_offsets(side == 0 ? first : second, mine);
    if (side == 0) out.resize(encoding.offsets.size());
    for (size_t i = 0, k = 0; i < out.size(); ++i) {
      if (encoding.text_index[i] == side) out[i] = chars[k++];
    }
  }
  return out;
}

inline std::string rest_digest(const Encoding& encoding, std::string_view first, std::string_view second, bool pair) {
  Digest digest;
  for (const Offsets& offsets : char_offsets_of(encoding, first, second)) {
    digest.add(offsets.first);
    digest.add(offsets.second);
  }
  for (const std::string& token : encoding.tokens) {
    for (const char byte : token) digest.add(static_cast<unsigned char>(byte));
    digest.add(256);
  }
  if (pair) {
    for (const int32_t type : encoding.type_ids) digest.add(static_cast<uint64_t>(type));
    for (const uint8_t special : encoding.special_tokens_mask) digest.add(special);
  }
  return digest.hex();
}

inline bool same_digest(const std::string& ours, std::string_view golden) {
  return golden.size() <= ours.size() && ours.substr(ours.size() - golden.size()) == golden;
}

/// What differs from a line "IDS|REST" of a golden file; empty when nothing does.
inline std::string difference(const Encoding& encoding, std::string_view first, std::string_view second, bool pair, std::string_view line) {
  const size_t bar = line.find('|');
  const std::string ids(line.substr(0, bar));
  const std::string_view rest = line.substr(bar + 1);
  std::ostringstream ours;
  for (size_t i = 0; i < encoding.ids.size(); ++i) ours << (i > 0 ? " " : "") << encoding.ids[i];
  const bool digest = ids.find(' ') == std::string::npos;
  std::string what;
  if (digest ? !same_digest(ids_digest(encoding), ids) : ours.str() != ids) what = "ids, expected " + ids;
  if (what.empty() && !same_digest(rest_digest(encoding, first, second, pair), rest)) what = "offsets, token strings, types or mask";
  if (what.empty()) return what;
  std::ostringstream out;
  out << what << "; have";
  const std::vector<Offsets> chars = char_offsets_of(encoding, first, second);
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    out << ' ' << encoding.ids[i] << "='" << encoding.tokens[i] << "'[" << chars[i].first << ',' << chars[i].second << ')';
  }
  return out.str();
}

}  // namespace muster::text::golden
