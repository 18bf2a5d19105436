// Generated code against the interpreter: whole regions scheduled from graphs, every instruction on ordinary and extreme values, both
// forms, both storage types, widths with and without a tail; and that its bits do not depend on how rows and columns are cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/code.h"
#include "backend/cpu/kernels.h"
#include "core/philox.h"
#include "interpret.h"
#include "runtime/backends.h"
#include "runtime/codegen.h"

namespace muster::codegen {
namespace {

using cpu::Access;
using cpu::Argument;
using cpu::Do;
using cpu::Instruction;
using cpu::LoopNest;
using cpu::RegionCall;
using cpu::Store;

constexpr uint64_t kSeed = 77;

Instruction load(int32_t slot) { return {Do::load, -1, -1, -1, slot, 0}; }
Instruction unary(Do what, int32_t a) { return {what, a, -1, -1, -1, 0}; }
Instruction binary(Do what, int32_t a, int32_t b) { return {what, a, b, -1, -1, 0}; }
Store put(int32_t slot, int32_t from) { return {Store::To::argument, slot, from}; }

/// Arguments of a nest with memory of their own.
struct Memory {
  explicit Memory(const LoopNest& n, int64_t row_count) : nest(n), rows(row_count) {
    for (const Argument& a : nest.arguments) {
      const int64_t size = a.access == Access::full || a.access == Access::tile ? rows * nest.width
                           : a.access == Access::column                         ? rows
                           : a.access == Access::scalar                         ? 1
                                                                                : nest.width;
      bytes.emplace_back(static_cast<size_t>(size) * size_of(a.dtype) + 8, std::byte{0x5a});  // 8 of guard
      counts.push_back(size);
      if (a.access == Access::column_sum) std::fill(bytes.back().begin(), bytes.back().end() - 8, std::byte{0});
      pointers.push_back(bytes.back().data());
    }
  }
  double get(size_t k, int64_t i) const {
    const auto n = static_cast<size_t>(i);
    switch (nest.arguments[k].dtype) {
      case DType::f32: return static_cast<double>(reinterpret_cast<const float*>(bytes[k].data())[n]);
      case DType::bf16: return static_cast<double>(to_f32(reinterpret_cast<const BF16*>(bytes[k].data())[n]));
      default: return static_cast<double>(bytes[k][n]);
    }
  }
  void set(size_t k, int64_t i, double v) {
    const auto n = static_cast<size_t>(i);
    switch (nest.arguments[k].dtype) {
      case DType::f32: reinterpret_cast<float*>(bytes[k].data())[n] = static_cast<float>(v); break;
      case DType::bf16: reinterpret_cast<BF16*>(bytes[k].data())[n] = to_bf16(static_cast<float>(v)); break;
      default: bytes[k][n] = v != 0 ? std::byte{1} : std::byte{0};
    }
  }
  void fill(uint64_t stream) {
    Philox random(stream, 5);
    for (size_t k = 0; k < bytes.size(); ++k)
      if (!nest.arguments[k].output)
        for (int64_t i = 0; i < counts[k]; ++i) set(k, i, nest.arguments[k].dtype == DType::boolean ? random.below(2) : random.normal());
  }
  Interpreted values() const {
    Interpreted x;
    for (size_t k = 0; k < bytes.size(); ++k) {
      std::vector<double> v;
      for (int64_t i = 0; i < counts[k]; ++i) v.push_back(get(k, i));
      if (nest.arguments[k].access == Access::tile) x.tile = v;
      x.arguments.push_back(std::move(v));
    }
    return x;
  }
  bool guards_hold() const {
    return std::all_of(bytes.begin(), bytes.end(),
                       [](const auto& b) { return std::all_of(b.end() - 8, b.end(), [](std::byte g) { return g == std::byte{0x5a}; }); });
  }

  const LoopNest& nest;
  int64_t rows;
  std::vector<std::vector<std::byte>> bytes;
  std::vector<int64_t> counts;
  std::vector<void*> pointers;
};

/// Runs a nest on memory, rows [begin, end) or, for a tile nest, columns [col, col + cols) of all rows.
class Runner {
 public:
  explicit Runner(const LoopNest& nest) : nest_(nest), code_(cpu::Code::load(runtime::generate({&nest, 1}, runtime::machine_isa()))) {
    for (size_t i = 0; i < nest.masks.size(); ++i) streams.push_back(40 + i);
    buffers_.resize(static_cast<size_t>(nest.buffers * cpu::padded_width(nest.width)) + 16);
    words_.resize(nest.masks.size() * static_cast<size_t>(cpu::mask_room(nest.width)) + 64);
  }
  void rows(Memory& m, int64_t begin, int64_t end) {
    const RegionCall call = this->call(m);
    reinterpret_cast<cpu::RowsFunction>(code_->find(nest_.name))(&call, begin, end);
  }
  void tile(Memory& m, int64_t col, int64_t cols) {
    const RegionCall call = this->call(m);
    float* tile = nullptr;
    for (size_t k = 0; k < nest_.arguments.size(); ++k)
      if (nest_.arguments[k].access == Access::tile) tile = reinterpret_cast<float*>(m.bytes[k].data());
    reinterpret_cast<cpu::TileFunction>(code_->find(nest_.name))(&call, tile + col, nest_.width, 0, m.rows, col, cols);
  }
  std::vector<uint64_t> streams;

 private:
  RegionCall call(Memory& m) {
    return {m.pointers.data(), buffers_.data(), words_.data(), kSeed, streams.data(), cpu::kernels(runtime::machine_isa()).mask_words};
  }
  const LoopNest& nest_;
  std::shared_ptr<const cpu::Code> code_;
  std::vector<float> buffers_;
  std::vector<uint16_t> words_;
};

/// Outputs of `m` against the interpreter's, within `ulps` of f32 (or of bf16) and a rounding of the largest value for sums.
void expect_close(const Memory& m, const Interpreted& expected, double tolerance) {
  EXPECT_TRUE(m.guards_hold());
  for (size_t k = 0; k < m.bytes.size(); ++k) {
    if (!m.nest.arguments[k].output) continue;
    const double step = m.nest.arguments[k].dtype == DType::bf16 ? std::max(tolerance, 0.004) : tolerance;
    for (int64_t i = 0; i < m.counts[k]; ++i) {
      const double want = expected.arguments[k][static_cast<size_t>(i)], got = m.get(k, i);
      if (std::isnan(want)   ? !std::isnan(got)
          : std::isinf(want) ? got != want
                             : std::abs(got - want) > step * std::max(1.0, std::abs(want)))
        FAIL() << m.nest.name << ": argument " << k << " element " << i << ": " << got << ", not " << want;
    }
  }
}

/// One instruction on x (and y, and a condition), through all accesses of its operands.
LoopNest one_op(Do what, int operands, int64_t width, DType dtype) {
  LoopNest nest;
  nest.name = "one", nest.width = width;
  nest.arguments = {
      {Access::full, dtype, false}, {Access::row, DType::f32, false}, {Access::full, DType::boolean, false}, {Access::full, dtype, true}};
  cpu::Stage stage;
  if (operands == 3)
    stage.body = {load(2), load(0), load(1), {what, 0, 1, 2, -1, 0}};
  else if (operands == 2)
    stage.body = {load(0), load(1), binary(what, 0, 1)};
  else
    stage.body = {load(0), unary(what, 0)};
  if (what == Do::greater) {
    stage.body.push_back({Do::select, 2, 0, 1, -1, 0});
  }
  stage.stores = {put(3, static_cast<int32_t>(stage.body.size()) - 1)};
  nest.stages = {stage};
  return nest;
}

TEST(Codegen, EveryInstructionOnOrdinaryValues) {
  const std::vector<std::pair<Do, int>> ops{
      {Do::neg, 1},   {Do::exp, 1},  {Do::log, 1},       {Do::sqrt, 1},       {Do::rsqrt, 1},           {Do::tanh, 1},
      {Do::erf, 1},   {Do::gelu, 1}, {Do::gelu_tanh, 1}, {Do::gelu_slope, 1}, {Do::gelu_tanh_slope, 1}, {Do::round_bf16, 1},
      {Do::add, 2},   {Do::sub, 2},  {Do::mul, 2},       {Do::div, 2},        {Do::maximum, 2},         {Do::greater, 2},
      {Do::select, 3}};
  for (const auto& [what, operands] : ops)
    for (const int64_t width : {1, 8, 37, 131})
      for (const DType dtype : {DType::f32, DType::bf16}) {
        SCOPED_TRACE(fmt::format("op {} width {} {}", static_cast<int>(what), width, name_of(dtype)));
        const LoopNest nest = one_op(what, operands, width, dtype);
        Memory m(nest, 3);
        m.fill(static_cast<uint64_t>(width));
        Interpreted expected = m.values();
        interpret(nest, expected, 3, kSeed, {});
        Runner(nest).rows(m, 0, 3);
        expect_close(m, expected, 1e-6);
      }
}

/// Values in units of the last place between f32 `got` and the exact `want`.
double ulps(float got, double want) {
  const float nearest = static_cast<float>(want);
  if (std::isnan(nearest) || std::isinf(nearest))
    return std::isnan(nearest) == std::isnan(got) && (std::isnan(got) || got == nearest) ? 0 : 1e9;
  const double step = std::abs(static_cast<double>(std::nextafter(std::abs(nearest), INFINITY)) - std::abs(static_cast<double>(nearest)));
  return std::abs(static_cast<double>(got) - want) / step;
}

/// Largest error of a function over f32 values: every `stride`th bit pattern. MUSTER_ALL_FLOATS=1 takes every one, in minutes.
double worst_error(Do what, uint32_t stride) {
  constexpr int64_t kWidth = 4096;
  LoopNest nest = one_op(what, 1, kWidth, DType::f32);
  Runner runner(nest);
  Memory m(nest, 1);
  double worst = 0;
  uint64_t pattern = 0;
  while (pattern < (uint64_t{1} << 32)) {
    std::vector<float> x;
    for (int64_t i = 0; i < kWidth; ++i, pattern += stride) {
      const auto bits = static_cast<uint32_t>(std::min<uint64_t>(pattern, 0xffffffffu));
      float v = 0;
      std::memcpy(&v, &bits, sizeof v);
      x.push_back(v);
      m.set(0, i, 0);
      reinterpret_cast<float*>(m.bytes[0].data())[i] = v;
    }
    runner.rows(m, 0, 1);
    for (int64_t i = 0; i < kWidth; ++i) {
      const double want = apply({what, 0, -1, -1, -1, 0}, static_cast<double>(x[static_cast<size_t>(i)]), 0, 0);
      worst = std::max(worst, ulps(reinterpret_cast<const float*>(m.bytes[3].data())[i], want));
    }
  }
  return worst;
}

TEST(Codegen, FunctionsAreWithinTwoUnitsInTheLastPlace) {
  const bool all = std::getenv("MUSTER_ALL_FLOATS") != nullptr;
  for (const Do what : {Do::exp, Do::log, Do::erf, Do::tanh, Do::sqrt, Do::rsqrt})
    EXPECT_LE(worst_error(what, all ? 1 : 20011), 2.0) << "instruction " << static_cast<int>(what);
}

/// Two stages with a row sum, a row maximum, a buffer, dropout, both kinds of column results and a sum over the rows.
LoopNest everything(int64_t width, DType dtype) {
  LoopNest nest;
  nest.name = "everything", nest.width = width, nest.buffers = 1, nest.reductions = 2;
  nest.arguments = {{Access::full, dtype, false},          {Access::row, DType::f32, false}, {Access::column, DType::f32, false},
                    {Access::scalar, DType::f32, false},   {Access::full, dtype, true},      {Access::column, DType::f32, true},
                    {Access::column_sum, DType::f32, true}};
  nest.masks = {{19661, 65536.0f / (65536 - 19661)}, {6554, 65536.0f / (65536 - 6554)}};
  cpu::Stage first, second;
  first.body = {load(0), {Do::dropout, -1, -1, -1, 0, 0}, binary(Do::mul, 0, 1), load(1), binary(Do::add, 2, 3)};
  first.stores = {{Store::To::buffer, 0, 4}, {Store::To::row_sum, 0, 4}, {Store::To::row_max, 1, 2}};
  second.body = {{Do::buffer, -1, -1, -1, 0, 0},
                 {Do::reduced, -1, -1, -1, 0, 0},
                 {Do::constant, -1, -1, -1, -1, static_cast<double>(width)},
                 binary(Do::div, 1, 2),
                 {Do::reduced, -1, -1, -1, 1, 0},
                 load(2),
                 load(3),
                 binary(Do::mul, 5, 6),
                 binary(Do::sub, 0, 3),
                 binary(Do::add, 8, 7),
                 {Do::dropout, -1, -1, -1, 1, 0},
                 binary(Do::mul, 9, 10),
                 binary(Do::add, 3, 4)};
  second.stores = {put(4, 11), put(5, 12), put(6, 11)};
  nest.stages = {first, second};
  return nest;
}

TEST(Codegen, StagesReductionsDropoutAndColumnResults) {
  for (const int64_t width : {1, 7, 16, 33, 64, 100, 384, 1000})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(width);
      const LoopNest nest = everything(width, dtype);
      Memory m(nest, 5);
      m.fill(3);
      Runner runner(nest);
      Interpreted expected = m.values();
      interpret(nest, expected, 5, kSeed, runner.streams);
      runner.rows(m, 0, 5);
      expect_close(m, expected, 2e-5);
    }
}

TEST(Codegen, RowsGiveTheSameBitsHoweverTheyAreCutAndNoRowsAreFine) {
  const LoopNest nest = everything(100, DType::f32);
  Memory whole(nest, 7), parts(nest, 7);
  whole.fill(9), parts.fill(9);
  Runner runner(nest);
  runner.rows(whole, 0, 7);
  runner.rows(parts, 0, 0);
  for (const auto& [begin, end] : {std::pair{0, 1}, {1, 4}, {4, 7}}) runner.rows(parts, begin, end);
  EXPECT_EQ(whole.bytes[4], parts.bytes[4]);
  EXPECT_EQ(whole.bytes[5], parts.bytes[5]);
  EXPECT_EQ(whole.bytes[6], parts.bytes[6]) << "sums over the rows, in rising order";
}

TEST(Codegen, EpiloguesOnAnyRectangle) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    LoopNest nest;
    nest.name = "tile", nest.tile = true, nest.width = 70;
    nest.arguments = {{Access::tile, DType::f32, false},     {Access::row, DType::f32, false}, {Access::full, dtype, false},
                      {Access::column, DType::f32, false},   {Access::full, dtype, true},      {Access::full, DType::f32, true},
                      {Access::column_sum, DType::f32, true}};
    nest.masks = {{19661, 65536.0f / (65536 - 19661)}};
    cpu::Stage stage;
    stage.body = {load(0),
                  load(1),
                  binary(Do::add, 0, 1),
                  unary(Do::gelu, 2),
                  {Do::dropout, -1, -1, -1, 0, 0},
                  binary(Do::mul, 3, 4),
                  load(2),
                  binary(Do::add, 5, 6),
                  load(3),
                  binary(Do::mul, 7, 8)};
    stage.stores = {put(4, 9), put(5, 2), put(6, 9)};
    nest.stages = {stage};
    Memory whole(nest, 6), parts(nest, 6);
    whole.fill(2), parts.fill(2);
    Runner runner(nest);
    Interpreted expected = whole.values();
    interpret(nest, expected, 6, kSeed, runner.streams);
    // Columns in pieces of at most 32, as the matmul hands them over.
    for (int64_t col = 0; col < 70; col += 32) runner.tile(whole, col, std::min<int64_t>(32, 70 - col));
    expect_close(whole, expected, 1e-5);
    for (const auto& [col, cols] : {std::pair{0, 3}, {3, 16}, {19, 1}, {20, 31}, {51, 19}}) runner.tile(parts, col, cols);
    for (const size_t k : {4U, 5U, 6U}) EXPECT_EQ(whole.bytes[k], parts.bytes[k]) << "argument " << k;
  }
}

TEST(Codegen, ProloguesOnAnyRectangle) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    LoopNest nest;
    nest.name = "made", nest.tile = true, nest.width = 70;
    nest.arguments = {{Access::full, dtype, false},
                      {Access::column, DType::f32, false},
                      {Access::row, DType::f32, false},
                      {Access::tile, DType::f32, true}};
    cpu::Stage stage;
    stage.body = {load(0), load(1), binary(Do::sub, 0, 1), load(2), binary(Do::mul, 2, 3), unary(Do::gelu, 4)};
    stage.stores = {put(3, 5)};
    nest.stages = {stage};
    Memory whole(nest, 6), parts(nest, 6);
    whole.fill(2), parts.fill(2);
    Runner runner(nest);
    Interpreted expected = whole.values();
    interpret(nest, expected, 6, kSeed, runner.streams);
    expected.arguments[3] = expected.tile;
    runner.tile(whole, 0, 70);
    expect_close(whole, expected, 1e-5);
    for (const auto& [col, cols] : {std::pair{0, 3}, {3, 16}, {19, 1}, {20, 31}, {51, 19}}) runner.tile(parts, col, cols);
    EXPECT_EQ(whole.bytes[3], parts.bytes[3]);
  }
}

TEST(Codegen, EqualNestsGiveEqualBytesForEveryLevel) {
  const std::vector<LoopNest> nests{everything(64, DType::f32), one_op(Do::gelu, 1, 37, DType::bf16)};
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::amx}) {
    const auto once = runtime::generate(nests, isa), again = runtime::generate(nests, isa);
    EXPECT_EQ(once, again) << name_of(isa);
    EXPECT_GT(once.size(), 1000u);
  }
  EXPECT_NE(runtime::generate(nests, Isa::avx2), runtime::generate(nests, Isa::avx512));
}

TEST(Code, WhatIsNoObjectOrLacksAFunctionIsAnError) {
  const std::vector<std::byte> junk(100, std::byte{1});
  EXPECT_THROW((void)cpu::Code::load(junk), Error);
  EXPECT_THROW((void)cpu::Code::load("/nowhere/program.so"), Error);
  const LoopNest nest = one_op(Do::neg, 1, 8, DType::f32);
  EXPECT_THROW((void)cpu::Code::load(runtime::generate({&nest, 1}, runtime::machine_isa()))->find("two"), Error);
}

}  // namespace
}  // namespace muster::codegen
