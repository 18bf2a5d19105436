// Flat hash of strings; see vocab.h.
#include "text/vocab.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/error.h"

namespace muster::text {

bool StringTable::insert(std::string_view key, int32_t id) {
  if ((count_ + 1) * 2 > slots_.size()) grow();
  if (bytes_.size() + key.size() > std::numeric_limits<uint32_t>::max()) {
    throw Error(ErrorKind::too_large, "[tokenizer] the vocabulary has more than 4 GB of characters");
  }
  const uint64_t hash = ByteHash::of(key);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  for (; slots_[i].id >= 0; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.tag == tag && std::string_view(bytes_).substr(slot.begin, slot.size) == key) return false;
  }
  slots_[i] = {tag, id, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(key.size())};
  bytes_.append(key);
  ++count_;
  longest_ = std::max(longest_, key.size());
  return true;
}

int32_t StringTable::find(std::string_view key, uint64_t hash) const {
  if (slots_.empty()) return -1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask; slots_[i].id >= 0; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.tag == tag && slot.size == key.size() && std::memcmp(bytes_.data() + slot.begin, key.data(), key.size()) == 0) return slot.id;
  }
  return -1;
}

void StringTable::grow() {
  std::vector<Slot> old(std::max<size_t>(16, slots_.size() * 2));
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    size_t i = ByteHash::of(std::string_view(bytes_).substr(slot.begin, slot.size)) & mask;
    while (slots_[i].id >= 0) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

void Vocab::add(std::string_view token, int64_t id) {
  if (id < 0 || id > kMaxId) {
    throw Error(ErrorKind::corrupt, "[tokenizer] token '{}' has the id {}; ids go from 0 to {}", token, id, kMaxId);
  }
  const auto index = static_cast<size_t>(id);
  const int32_t known = table_.find(token);
  if (known >= 0 && known != id) throw Error(ErrorKind::corrupt, "[tokenizer] token '{}' has two ids, {} and {}", token, known, id);
  if (has(static_cast<int32_t>(id)) && *tokens_[index] != token) {
    throw Error(ErrorKind::corrupt, "[tokenizer] the id {} has two tokens, '{}' and '{}'", id, *tokens_[index], token);
  }
  if (known >= 0) return;
  table_.insert(token, static_cast<int32_t>(id));
  if (index >= tokens_.size()) tokens_.resize(index + 1);
  tokens_[index] = std::string(token);
}

bool Vocab::has(int32_t id) const { return id >= 0 && id < end() && tokens_[static_cast<size_t>(id)].has_value(); }

std::string_view Vocab::token(int32_t id) const {
  return has(id) ? std::string_view(*tokens_[static_cast<size_t>(id)]) : std::string_view();
}

}  // namespace muster::text
