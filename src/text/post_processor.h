// Post-processors: the special tokens around one text or a pair, type ids, and white space trimmed from offsets.
// BertProcessing and RobertaProcessing are templates here. Cutting to a length is tokenizer.cpp, it comes before.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace muster::text {

/// A piece of a template: one of the texts, or special tokens.
struct TemplatePiece {
  int text = -1;  // 0: first, 1: second, -1: special tokens
  int32_t type_id = 0;
  std::vector<int32_t> ids;
  std::vector<std::string> tokens;
};

struct PostProcessor {
  std::vector<TemplatePiece> single{{0, 0, {}, {}}};
  std::vector<TemplatePiece> pair{{0, 0, {}, {}}, {1, 1, {}, {}}};
  bool trim_offsets = false;      // ByteLevel, RobertaProcessing: offsets without the white space around a token
  bool add_prefix_space = false;  // then the one space of a text's first token is not trimmed: it was put there

  [[nodiscard]] int added(bool is_pair) const {
    int count = 0;
    for (const TemplatePiece& piece : is_pair ? pair : single) count += static_cast<int>(piece.ids.size());
    return count;
  }
};

}  // namespace muster::text
