// Names from files of unknown origin (columns, labels, tensors, archive entries), made fit for a message of one line.
#pragma once
#include <string>
#include <string_view>

namespace muster::storage {

/// Control characters become '?', and what is longer than `limit` bytes is cut at a code point, with "..." behind it.
inline std::string printable(std::string_view text, size_t limit = 120) {
  const bool cut = text.size() > limit;
  if (cut) {
    while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0u) == 0x80u) --limit;
    text = text.substr(0, limit);
  }
  std::string result(text);
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return cut ? result + "..." : result;
}

}  // namespace muster::storage
