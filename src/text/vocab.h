// The table between token strings and ids: one block of characters and a flat hash, looked up without allocation.
// Which strings are looked up is the business of the models (wordpiece, bpe) and of added_tokens.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::text {

/// Hash of bytes that can be extended a byte at a time: extend(hash_of(a), b...) = hash_of(ab).
struct ByteHash {
  static constexpr uint64_t kStart = 0xCBF29CE484222325u;
  static uint64_t extend(uint64_t hash, char byte) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
  }
  static uint64_t of(std::string_view bytes) {
    uint64_t hash = kStart;
    for (const char byte : bytes) hash = extend(hash, byte);
    return hash;
  }
};

/// Byte string -> id. Open addressing with linear probing, at most half full.
class StringTable {
 public:
  /// Adds a key; false when it is there already (the first id stays).
  bool insert(std::string_view key, int32_t id);
  /// Id of `key`, -1 when absent. `hash` must be ByteHash::of(key).
  [[nodiscard]] int32_t find(std::string_view key, uint64_t hash) const;
  [[nodiscard]] int32_t find(std::string_view key) const { return find(key, ByteHash::of(key)); }
  [[nodiscard]] size_t size() const { return count_; }
  [[nodiscard]] size_t longest() const { return longest_; }

 private:
  struct Slot {
    uint32_t tag = 0;  // upper half of the hash
    int32_t id = -1;   // -1: free
    uint32_t begin = 0;
    uint32_t size = 0;
  };
  void grow();

  std::vector<Slot> slots_;
  std::string bytes_;
  size_t count_ = 0;
  size_t longest_ = 0;
};

/// Tokens by id and ids by token.
class Vocab {
 public:
  /// Throws Error(corrupt) when the id is negative or above kMaxId, when the token or the id is there already with another partner.
  void add(std::string_view token, int64_t id);
  [[nodiscard]] int32_t find(std::string_view token) const { return table_.find(token); }
  /// Empty when no token has this id.
  [[nodiscard]] std::string_view token(int32_t id) const;
  [[nodiscard]] bool has(int32_t id) const;
  /// Highest id + 1.
  [[nodiscard]] int32_t end() const { return static_cast<int32_t>(tokens_.size()); }
  /// Distinct tokens.
  [[nodiscard]] size_t count() const { return table_.size(); }

  static constexpr int64_t kMaxId = (1 << 21) - 1;  // bounds what a broken file can make us allocate

 private:
  StringTable table_;
  std::vector<std::optional<std::string>> tokens_;
};

}  // namespace muster::text
