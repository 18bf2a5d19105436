// Alignment bookkeeping; see normalized.h.
#include "text/normalized.h"

namespace muster::text {

void Normalized::assign(std::string_view source, size_t begin, size_t end, bool with_origin) {
  text.assign(source.substr(begin, end - begin));
  aligned = with_origin;
  origin.clear();
  if (!aligned) return;
  origin.reserve(text.size());
  for (size_t i = begin; i < end;) {
    const size_t size = decode_valid(source, i).size;
    origin.insert(origin.end(), size, Span{static_cast<uint32_t>(i), static_cast<uint32_t>(i + size)});
    i += size;
  }
}

void Normalized::apply(const std::vector<Change>& changes) {
  Normalized result;
  result.aligned = aligned;
  result.text.reserve(text.size());
  size_t offset = 0;  // in the old text
  for (const Change& change : changes) {
    Span from{0, 0};
    if (aligned) {
      const size_t place = change.added ? offset - (offset > 0 ? 1 : 0) : offset;
      if (place < origin.size() && (!change.added || offset > 0)) from = origin[place];
    }
    if (!change.added && offset < text.size()) offset += decode_valid(text, offset).size;
    result.push(change.code, from);
  }
  *this = std::move(result);
}

void Normalized::prepend_space() {
  if (text.empty()) return;
  if (aligned) origin.insert(origin.begin(), origin.front());
  text.insert(text.begin(), ' ');
}

}  // namespace muster::text
