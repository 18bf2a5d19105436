// Loop nests evaluated naively in f64: the oracle of the generated code.
#pragma once
#include <cmath>
#include <limits>
#include <vector>

#include "backend/cpu/loop_nest.h"
#include "core/dropout_mask.h"

namespace muster::codegen {

/// An argument's elements as doubles. `tile` holds the sums [rows, width] of a tile nest.
struct Interpreted {
  std::vector<std::vector<double>> arguments;  // in the order of the nest's
  std::vector<double> tile;
};

inline double apply(const cpu::Instruction& i, double a, double b, double c) {
  using cpu::Do;
  const auto slope = [](double x) { return 0.5 * std::erfc(-x * M_SQRT1_2) + x * std::exp(-0.5 * x * x) * 0.3989422804014327; };
  const auto inner = [](double x) { return std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)); };
  switch (i.what) {
    case Do::neg: return -a;
    case Do::exp: return std::exp(a);
    case Do::log: return std::log(a);
    case Do::sqrt: return std::sqrt(a);
    case Do::rsqrt: return 1 / std::sqrt(a);
    case Do::tanh: return std::tanh(a);
    case Do::erf: return std::erf(a);
    case Do::gelu: return a * 0.5 * std::erfc(-a * M_SQRT1_2);
    case Do::gelu_tanh: return 0.5 * a * (1 + inner(a));
    case Do::gelu_slope: return slope(a);
    case Do::gelu_tanh_slope: {
      const double t = inner(a);
      return 0.5 * (1 + t) + 0.5 * a * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * a * a);
    }
    case Do::round_bf16: return static_cast<double>(to_f32(to_bf16(static_cast<float>(a))));
    case Do::add: return a + b;
    case Do::sub: return a - b;
    case Do::mul: return a * b;
    case Do::div: return a / b;
    case Do::maximum: return std::isnan(a) || a > b ? a : b;
    case Do::greater: return a > b;
    case Do::select: return a != 0 ? b : c;
    default: return 0;
  }
}

inline void interpret(const cpu::LoopNest& nest, Interpreted& x, int64_t rows, uint64_t seed, const std::vector<uint64_t>& streams) {
  using cpu::Access;
  using cpu::Do;
  using cpu::Store;
  const int64_t width = nest.width;
  const auto at = [&](int32_t slot, int64_t r, int64_t c) -> double& {
    const Access access = nest.arguments[static_cast<size_t>(slot)].access;
    std::vector<double>& v = access == Access::tile ? x.tile : x.arguments[static_cast<size_t>(slot)];
    switch (access) {
      case Access::full:
      case Access::tile: return v[static_cast<size_t>(r * width + c)];
      case Access::row:
      case Access::column_sum: return v[static_cast<size_t>(c)];
      case Access::column: return v[static_cast<size_t>(r)];
      case Access::scalar: break;
    }
    return v[0];
  };
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<double> reduced(static_cast<size_t>(nest.reductions));
    std::vector<std::vector<double>> buffers(static_cast<size_t>(nest.buffers), std::vector<double>(static_cast<size_t>(width)));
    for (const cpu::Stage& stage : nest.stages) {
      std::vector<double> next = reduced;
      for (const Store& s : stage.stores)
        if (s.to == Store::To::row_sum || s.to == Store::To::row_max)
          next[static_cast<size_t>(s.slot)] = s.to == Store::To::row_sum ? 0 : -std::numeric_limits<double>::infinity();
      for (int64_t c = 0; c < width; ++c) {
        std::vector<double> v;
        for (const cpu::Instruction& i : stage.body) {
          const auto in = [&](int32_t k) { return k < 0 ? 0.0 : v[static_cast<size_t>(k)]; };
          switch (i.what) {
            case Do::load: v.push_back(at(i.slot, r, c)); break;
            case Do::buffer: v.push_back(buffers[static_cast<size_t>(i.slot)][static_cast<size_t>(c)]); break;
            case Do::reduced: v.push_back(reduced[static_cast<size_t>(i.slot)]); break;
            case Do::constant: v.push_back(i.value); break;
            case Do::dropout: {
              const cpu::DropoutMask& mask = nest.masks[static_cast<size_t>(i.slot)];
              v.push_back(static_cast<double>(dropout_factor({mask.threshold, mask.scale}, seed, streams[static_cast<size_t>(i.slot)],
                                                             static_cast<uint64_t>(r * width + c))));
              break;
            }
            default: v.push_back(apply(i, in(i.a), in(i.b), in(i.c)));
          }
        }
        for (const Store& s : stage.stores) {
          const double value = v[static_cast<size_t>(s.from)];
          const auto k = static_cast<size_t>(s.slot);
          switch (s.to) {
            case Store::To::buffer: buffers[k][static_cast<size_t>(c)] = value; break;
            case Store::To::row_sum: next[k] += value; break;
            case Store::To::row_max: next[k] = std::isnan(next[k]) || next[k] > value ? next[k] : value; break;
            case Store::To::argument:
              if (nest.arguments[static_cast<size_t>(s.slot)].access == Access::column_sum)
                at(s.slot, r, c) += value;
              else
                at(s.slot, r, c) = value;
          }
        }
      }
      reduced = next;
    }
  }
}

}  // namespace muster::codegen
