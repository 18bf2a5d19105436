// The dropout mask of core/dropout_mask.h by vectors: one Philox block of eight elements per 64-bit lane.
#pragma once
#include <immintrin.h>

#include "backend/cpu/isa/loops.h"

namespace muster::cpu::MUSTER_ISA_NAMESPACE {

using VecQ = uint64_t __attribute__((vector_size(kLanes * 4)));
constexpr int kBlocks = kLanes / 2;  // Philox blocks in one VecQ
/// A buffer for `dropout_words` of n elements holds this many.
constexpr int64_t dropout_buffer(int64_t n) { return n + 8 + 16 * kBlocks; }

/// Products of the low halves of the lanes.
inline VecQ multiply_low(VecQ a, uint64_t b) {
  VecQ m = VecQ{} + b, p;
#if MUSTER_LANES == 8
  p = reinterpret_cast<VecQ>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(m)));
#elif defined(__AVX512F__)  // the form without a mask draws a warning from GCC 12's own header
  p = reinterpret_cast<VecQ>(_mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(m)));
#else
  p = (a & 0xffffffffu) * m;
#endif
  return p;
}

/// State of Philox in lanes whose high halves are left dirty: the multiplication reads only the low ones.
struct PhiloxLanes {
  VecQ c0, c1, c2, c3;
  explicit PhiloxLanes(VecQ counter, uint64_t stream)
      : c0(counter), c1(counter >> 32), c2(VecQ{} + (stream & 0xffffffffu)), c3(VecQ{} + (stream >> 32)) {}
  void round(uint64_t k0, uint64_t k1) {
    const VecQ p0 = multiply_low(c0, 0xD2511F53u), p1 = multiply_low(c2, 0xCD9E8D57u);
    c0 = (p1 >> 32) ^ c1 ^ k0;
    c1 = p1;
    c2 = (p0 >> 32) ^ c3 ^ k1;
    c3 = p0;
  }
  /// Words in counter order: kBlocks * 8 elements.
  void write(uint16_t* out) const {
    const VecQ low = (c0 & 0xffffffffu) | (c1 << 32), high = (c2 & 0xffffffffu) | (c3 << 32);
    write(out, low, high, std::make_integer_sequence<int, kBlocks>{});
  }

 private:
  template <int... kLane>
  static void write(uint16_t* out, VecQ low, VecQ high, std::integer_sequence<int, kLane...>) {
    const VecQ first = __builtin_shufflevector(low, high, (kLane / 2 + (kLane % 2) * kBlocks)...);
    const VecQ second = __builtin_shufflevector(low, high, (kBlocks / 2 + kLane / 2 + (kLane % 2) * kBlocks)...);
    std::memcpy(out, &first, sizeof first);
    std::memcpy(out + sizeof first / 2, &second, sizeof second);
  }
};

/// The 16 bits of elements [first, first + n) of a mask, in `buffer` of dropout_buffer(n); returns where they start in it.
inline const uint16_t* dropout_words(const Dropout& dropout, uint64_t first, int64_t n, uint16_t* buffer) {
  const int64_t total = n + static_cast<int64_t>(first % 8);
  VecQ counter = VecQ{} + first / 8;
  for (int i = 0; i < kBlocks; ++i) counter[i] += static_cast<uint64_t>(i);
  for (int64_t i = 0; i < total; i += 16 * kBlocks) {
    PhiloxLanes a(counter, dropout.stream), b(counter + kBlocks, dropout.stream);  // two at once hide the multiplier's latency
    auto k0 = static_cast<uint32_t>(dropout.seed), k1 = static_cast<uint32_t>(dropout.seed >> 32);
#pragma GCC unroll 7
    for (int round = 0; round < 7; ++round) {
      a.round(k0, k1);
      b.round(k0, k1);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    a.write(buffer + i);
    b.write(buffer + i + 8 * kBlocks);
    counter += 2 * kBlocks;
  }
  return buffer + first % 8;
}

/// What the elements of `words` are multiplied by: 0 or rate.scale. Reads kLanes words.
inline VecF dropout_factors(const DropoutRate& rate, const uint16_t* words) {
  VecH w;
  std::memcpy(&w, words, sizeof w);
  const VecI bits = __builtin_convertvector(w, VecI);
  return bits < static_cast<int32_t>(rate.threshold) ? VecF{} : splat(rate.scale);
}

}  // namespace muster::cpu::MUSTER_ISA_NAMESPACE
