// The dropout mask as a pure function of (seed, stream, element index): recomputed in the backward pass, never stored.
// Every backend draws exactly these bits, eight elements from one Philox block, 16 bits each.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/philox.h"

namespace muster {

/// Rate p is rounded to 1/65536; `scale` keeps the expectation exact for the rounded rate.
struct DropoutRate {
  uint32_t threshold = 0;  // an element is dropped when its 16 bits are below
  float scale = 1.0f;      // of a kept element
};
inline DropoutRate dropout_rate(double p) {
  const auto threshold = static_cast<uint32_t>(std::lround(p * 65536.0));
  return {threshold, static_cast<float>(65536.0 / (65536.0 - threshold))};
}

/// The 16 bits of one element.
constexpr uint32_t dropout_bits(uint64_t seed, uint64_t stream, uint64_t index) {
  const uint32_t word = philox<7>(seed, stream, index / 8)[(index % 8) / 2];
  return index % 2 ? word >> 16 : word & 0xffffu;
}

/// What an element is multiplied by: 0 or rate.scale.
constexpr float dropout_factor(const DropoutRate& rate, uint64_t seed, uint64_t stream, uint64_t index) {
  return dropout_bits(seed, stream, index) < rate.threshold ? 0.0f : rate.scale;
}

/// Element index of attention probability (query token t of the batch, head h, key j of the same sequence, j < 65536).
constexpr uint64_t attention_dropout_index(int64_t t, int64_t heads, int64_t h, int64_t j) {
  return (static_cast<uint64_t>(t * heads + h) << 16) + static_cast<uint64_t>(j);
}

}  // namespace muster
