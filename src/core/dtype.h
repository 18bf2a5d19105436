// Element types and the 16-bit floats. Conversions round to nearest even and keep NaN a NaN.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster {

enum class DType : uint8_t { f32, f64, bf16, f16, i32, i64, u8, boolean };

constexpr size_t size_of(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::bf16:
    case DType::f16: return 2;
    case DType::u8:
    case DType::boolean: return 1;
  }
  return 0;
}
constexpr std::string_view name_of(DType t) {
  switch (t) {
    case DType::f64: return "f64";
    case DType::i64: return "i64";
    case DType::f32: return "f32";
    case DType::i32: return "i32";
    case DType::bf16: return "bf16";
    case DType::f16: return "f16";
    case DType::u8: return "u8";
    case DType::boolean: return "bool";
  }
  return "?";
}
constexpr bool is_float(DType t) { return t == DType::f32 || t == DType::f64 || t == DType::bf16 || t == DType::f16; }

/// bfloat16: the high half of an f32.
struct BF16 {
  uint16_t bits = 0;
};
struct F16 {
  uint16_t bits = 0;
};

constexpr float to_f32(BF16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }
constexpr BF16 to_bf16(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return BF16{static_cast<uint16_t>((u >> 16) | 0x40u)};  // NaN stays a (quiet) NaN
  return BF16{static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}
float to_f32(F16 value);
F16 to_f16(float value);

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<BF16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<F16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::u8;
};

}  // namespace muster
