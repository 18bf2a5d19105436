// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
// A value depends only on (seed, stream, counter): never on threads, order or batch layout.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace muster {

/// Four 32-bit words for one counter. Ten rounds are the paper's default; seven still pass its BigCrush tests.
template <int kRounds = 10>
constexpr std::array<uint32_t, 4> philox(uint64_t seed, uint64_t stream, uint64_t counter) {
  std::array<uint32_t, 4> c{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), static_cast<uint32_t>(stream),
                            static_cast<uint32_t>(stream >> 32)};
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1), static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1,
         static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

/// A sequential generator over one stream, for shuffles and initialisation.
class Philox {
 public:
  explicit Philox(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}
  uint32_t next() {
    if (used_ == 4) {
      block_ = philox(seed_, stream_, counter_++);
      used_ = 0;
    }
    return block_[used_++];
  }
  /// Uniform in [0, n), without bias (Lemire 2019).
  uint32_t below(uint32_t n) {
    uint64_t m = static_cast<uint64_t>(next()) * n;
    if (static_cast<uint32_t>(m) < n)
      for (const uint32_t floor = -n % n; static_cast<uint32_t>(m) < floor;) m = static_cast<uint64_t>(next()) * n;
    return static_cast<uint32_t>(m >> 32);
  }
  /// Uniform in [0, 1), 24 bits.
  float uniform() { return static_cast<float>(next() >> 8) * 0x1p-24f; }
  /// Normal(0, 1) by Box-Muller in f64.
  double normal();

 private:
  uint64_t seed_, stream_, counter_ = 0;
  std::array<uint32_t, 4> block_{};
  size_t used_ = 4;
};

}  // namespace muster
