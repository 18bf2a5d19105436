// BertNormalizer and the small Unicode normalizers. ASCII text takes one pass; everything else goes code point by code point.
#include "text/normalizer.h"

#include <algorithm>

namespace muster::text {

namespace {

void bert_ascii(Normalized& piece, const BertNormalizer& flags) {
  size_t kept = 0;
  for (size_t i = 0; i < piece.text.size(); ++i) {
    auto c = static_cast<unsigned char>(piece.text[i]);
    if (flags.clean_text) {
      if (c == '\t' || c == '\n' || c == '\r') {
        c = ' ';
      } else if (c < 0x20 || c == 0x7F) {
        continue;
      }
    }
    if (flags.lowercase && c >= 'A' && c <= 'Z') c |= 0x20u;
    piece.text[kept] = static_cast<char>(c);
    if (piece.aligned) piece.origin[kept] = piece.origin[i];
    ++kept;
  }
  piece.text.resize(kept);
  if (piece.aligned) piece.origin.resize(kept);
}

/// Runs `change(code, emit)` on every code point; what it emits comes from that code point's place.
template <typename F>
void map_codes(Normalized& piece, const F& change) {
  Normalized result;
  result.aligned = piece.aligned;
  result.text.reserve(piece.text.size() + piece.text.size() / 4);
  for (size_t i = 0; i < piece.text.size();) {
    const Decoded step = decode_valid(piece.text, i);
    const Span from = piece.aligned ? piece.origin[i] : Span{0, 0};
    change(step.code, [&](char32_t code) { result.push(code, from); });
    i += step.size;
  }
  piece = std::move(result);
}

void clean_and_space(Normalized& piece, const BertNormalizer& flags) {
  map_codes(piece, [&](char32_t code, const auto& emit) {
    if (flags.clean_text) {
      if (code == 0 || code == kReplacement || is_bert_control(code)) return;
      if (is_whitespace(code)) code = ' ';
    }
    if (flags.handle_chinese_chars && is_chinese(code)) {
      emit(' ');
      emit(code);
      emit(' ');
    } else {
      emit(code);
    }
  });
}

/// NFD or NFKD. Decomposed code points stand beside the one before; canonical reordering takes their marks along, as in the crate
/// unicode-normalization-alignments.
void decompose_all(Normalized& piece, bool compatibility) {
  if (is_ascii(piece.text)) return;
  struct Item {
    Change change;
    int order;
  };
  std::vector<Change> changes;
  std::vector<Item> marks;  // a run of code points with a combining class, not yet sorted
  std::vector<char32_t> parts;
  const auto flush = [&] {
    std::stable_sort(marks.begin(), marks.end(), [](const Item& a, const Item& b) { return a.order < b.order; });
    for (const Item& item : marks) changes.push_back(item.change);
    marks.clear();
  };
  for (size_t i = 0; i < piece.text.size();) {
    const Decoded step = decode_valid(piece.text, i);
    i += step.size;
    parts.clear();
    decompose(step.code, compatibility, parts);
    for (size_t k = 0; k < parts.size(); ++k) {
      const int order = combining_class(parts[k]);
      if (order == 0) {
        flush();
        changes.push_back({parts[k], k > 0});
      } else {
        marks.push_back({{parts[k], k > 0}, order});
      }
    }
  }
  flush();
  piece.apply(changes);
}

template <typename F>
void keep_if(Normalized& piece, const F& keep) {
  map_codes(piece, [&](char32_t code, const auto& emit) {
    if (keep(code)) emit(code);
  });
}

void lowercase(Normalized& piece) {
  map_codes(piece, [&](char32_t code, const auto& emit) {
    const Lowered lowered = to_lower(code);
    for (int k = 0; k < lowered.count; ++k) emit(lowered.codes[static_cast<size_t>(k)]);
  });
}

void bert(Normalized& piece, const BertNormalizer& flags) {
  if (is_ascii(piece.text)) {
    bert_ascii(piece, flags);
    return;
  }
  if (flags.clean_text || flags.handle_chinese_chars) clean_and_space(piece, flags);
  if (flags.strip_accents) {
    decompose_all(piece, false);
    keep_if(piece, [](char32_t code) { return !is_nonspacing_mark(code); });
  }
  if (flags.lowercase) lowercase(piece);
}

}  // namespace

bool Normalizer::has_bert() const { return std::find(steps_.begin(), steps_.end(), NormalizerStep::bert) != steps_.end(); }

void Normalizer::apply(Normalized& piece) const {
  for (const NormalizerStep step : steps_) {
    switch (step) {
      case NormalizerStep::bert: bert(piece, bert_); break;
      case NormalizerStep::lowercase: lowercase(piece); break;
      case NormalizerStep::nfd: decompose_all(piece, false); break;
      case NormalizerStep::nfkd: decompose_all(piece, true); break;
      case NormalizerStep::strip_accents: keep_if(piece, [](char32_t code) { return !is_mark(code); }); break;
    }
  }
}

}  // namespace muster::text
