#include "core/dtype.h"

#include <cmath>

namespace muster {

float to_f32(F16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t exponent = (value.bits >> 10) & 0x1fu, mantissa = value.bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float tiny = std::ldexp(static_cast<float>(mantissa), -24);
  return sign ? -tiny : tiny;
}

F16 to_f16(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return F16{static_cast<uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return F16{static_cast<uint16_t>(sign | 0x7c00u)};  // rounds past the largest half
  if (magnitude < 0x38800000u) {                                                    // subnormal half: units of 2^-24
    const float units = std::nearbyint(std::bit_cast<float>(magnitude) * 16777216.0f);
    return F16{static_cast<uint16_t>(sign | static_cast<uint16_t>(units))};
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return F16{static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

}  // namespace muster
