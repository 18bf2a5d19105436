// Byte-level BPE; see bpe.h. Short words scan for the best pair, long ones keep a heap, so that no word takes quadratic time.
#include "text/bpe.h"

#include <algorithm>
#include <queue>

#include "core/error.h"
#include "text/unicode.h"

namespace muster::text {

namespace {

bool prints(unsigned char byte) { return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE; }

constexpr size_t kShort = 24;  // symbols up to which the scan beats the heap

uint64_t mix(uint64_t value) {
  value *= 0x9E3779B97F4A7C15u;
  return value ^ value >> 29;
}

}  // namespace

char32_t byte_symbol(unsigned char byte) {
  if (prints(byte)) return byte;
  char32_t next = 0x100;
  for (unsigned b = 0; b < byte; ++b) next += prints(static_cast<unsigned char>(b)) ? 0 : 1;
  return next;
}

int symbol_byte(char32_t code) {
  static const std::array<int, 512> kBytes = [] {
    std::array<int, 512> table{};
    table.fill(-1);
    for (int byte = 0; byte < 256; ++byte) table[byte_symbol(static_cast<unsigned char>(byte))] = byte;
    return table;
  }();
  return code < kBytes.size() ? kBytes[code] : -1;
}

Bpe::Bpe(const Vocab& vocab, const std::vector<std::pair<std::string, std::string>>& merges, Options options, std::string_view where)
    : options_(std::move(options)) {
  if (!options_.unk_token.empty()) {
    unk_id_ = vocab.find(options_.unk_token);
    if (unk_id_ < 0) {
      throw Error(ErrorKind::corrupt, "[tokenizer] {}: the unknown token '{}' of BPE is not in its vocabulary", where, options_.unk_token);
    }
  }
  for (int byte = 0; byte < 256; ++byte) {
    std::string symbol;
    append_utf8(symbol, byte_symbol(static_cast<unsigned char>(byte)));
    byte_ids_[static_cast<size_t>(byte)] = vocab.find(symbol);
  }
  size_t slots = 16;
  while (slots < merges.size() * 2 + 2) slots *= 2;
  merges_.resize(slots);
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    joined.assign(left).append(right);
    const int32_t ids[] = {vocab.find(left), vocab.find(right), vocab.find(joined)};
    if (std::min({ids[0], ids[1], ids[2]}) < 0) {
      const std::string& missing = ids[0] < 0 ? left : ids[1] < 0 ? right : joined;
      throw Error(ErrorKind::corrupt, "[tokenizer] {}: merge {} ('{}' '{}') needs the token '{}', which is not in the vocabulary", where,
                  rank, left, right, missing);
    }
    insert(key(ids[0], ids[1]), static_cast<int32_t>(rank), ids[2]);
  }
  if (!options_.ignore_merges) return;
  for (int32_t id = 0; id < vocab.end(); ++id) {
    if (!vocab.has(id)) continue;
    std::string raw;
    bool whole = true;
    for (size_t i = 0; whole && i < vocab.token(id).size();) {
      const Decoded step = decode_utf8(vocab.token(id), i);
      const int byte = symbol_byte(step.code);
      whole = byte >= 0;
      raw.push_back(static_cast<char>(byte));
      i += step.size;
    }
    if (whole) whole_.insert(raw, id);
  }
}

void Bpe::insert(uint64_t pair, int32_t rank, int32_t id) {
  const size_t mask = merges_.size() - 1;
  size_t i = mix(pair) & mask;
  while (merges_[i].pair != kFree && merges_[i].pair != pair) i = (i + 1) & mask;
  merges_[i] = {pair, rank, id};  // of two equal merges the later counts, as in the Rust library
}

const Bpe::Merge* Bpe::find(int32_t left, int32_t right) const {
  const uint64_t pair = key(left, right);
  const size_t mask = merges_.size() - 1;
  for (size_t i = mix(pair) & mask; merges_[i].pair != kFree; i = (i + 1) & mask) {
    if (merges_[i].pair == pair) return &merges_[i];
  }
  return nullptr;
}

void Bpe::tokenize(std::string_view word, std::vector<Piece>& out) const {
  if (options_.ignore_merges) {
    const int32_t id = whole_.find(word);
    if (id >= 0) {
      out.push_back({id, 0, static_cast<uint32_t>(word.size())});
      return;
    }
  }
  const size_t first = out.size();
  bool last_unknown = false;
  for (size_t i = 0; i < word.size(); ++i) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(word[i])];
    const auto begin = static_cast<uint32_t>(i);
    if (id >= 0) {
      out.push_back({id, begin, begin + 1});
    } else if (unk_id_ >= 0) {
      if (last_unknown && options_.fuse_unk) {
        out.back().end = begin + 1;
      } else {
        out.push_back({unk_id_, begin, begin + 1});
      }
    }
    last_unknown = id < 0;
  }
  const size_t symbols = out.size() - first;
  if (symbols < 2) return;
  if (symbols <= kShort) {
    merge_short(out, first);
  } else {
    merge_long(out, first);
  }
}

void Bpe::merge_short(std::vector<Piece>& out, size_t first) const {
  Piece* symbol = out.data() + first;
  size_t count = out.size() - first;
  std::array<const Merge*, kShort> next{};  // merge of symbol i with symbol i + 1
  for (size_t i = 0; i + 1 < count; ++i) next[i] = find(symbol[i].id, symbol[i + 1].id);
  while (count > 1) {
    size_t best = count;
    for (size_t i = 0; i + 1 < count; ++i) {
      if (next[i] != nullptr && (best == count || next[i]->rank < next[best]->rank)) best = i;
    }
    if (best == count) break;
    symbol[best].id = next[best]->id;
    symbol[best].end = symbol[best + 1].end;
    for (size_t i = best + 1; i + 1 < count; ++i) {
      symbol[i] = symbol[i + 1];
      next[i] = next[i + 1];
    }
    --count;
    if (best > 0) next[best - 1] = find(symbol[best - 1].id, symbol[best].id);
    next[best] = best + 1 < count ? find(symbol[best].id, symbol[best + 1].id) : nullptr;
  }
  out.resize(first + count);
}

void Bpe::merge_long(std::vector<Piece>& out, size_t first) const {
  struct Node {
    int64_t previous;
    int64_t next;  // -1: none
    bool gone;
  };
  struct Entry {
    int32_t rank;
    int32_t id;
    int64_t position;
    uint64_t pair;
    bool operator<(const Entry& other) const { return rank != other.rank ? rank > other.rank : position > other.position; }
  };
  Piece* symbol = out.data() + first;
  const auto count = static_cast<int64_t>(out.size() - first);
  std::vector<Node> nodes(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) nodes[static_cast<size_t>(i)] = {i - 1, i + 1 < count ? i + 1 : -1, false};
  std::priority_queue<Entry> heap;
  const auto offer = [&](int64_t position) {
    if (position < 0) return;
    const int64_t after = nodes[static_cast<size_t>(position)].next;
    if (after < 0) return;
    const Merge* merge = find(symbol[position].id, symbol[after].id);
    if (merge != nullptr) heap.push({merge->rank, merge->id, position, merge->pair});
  };
  for (int64_t i = 0; i + 1 < count; ++i) offer(i);
  while (!heap.empty()) {
    const Entry top = heap.top();
    heap.pop();
    Node& node = nodes[static_cast<size_t>(top.position)];
    if (node.gone || node.next < 0 || key(symbol[top.position].id, symbol[node.next].id) != top.pair) continue;  // out of date
    Node& eaten = nodes[static_cast<size_t>(node.next)];
    symbol[top.position].id = top.id;
    symbol[top.position].end = symbol[node.next].end;
    eaten.gone = true;
    node.next = eaten.next;
    if (node.next >= 0) nodes[static_cast<size_t>(node.next)].previous = top.position;
    offer(node.previous);
    offer(top.position);
  }
  size_t kept = first;
  for (int64_t i = 0; i < count; ++i) {
    if (!nodes[static_cast<size_t>(i)].gone) out[kept++] = symbol[i];
  }
  out.resize(kept);
}

}  // namespace muster::text
