// 64-bit FNV-1a, for cache keys and identities inside one program. Not for untrusted integrity: that is storage/sha256.
#pragma once
#include <cstdint>
#include <string_view>

namespace muster {

constexpr uint64_t fnv1a(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325ull) {
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  return hash;
}

}  // namespace muster
