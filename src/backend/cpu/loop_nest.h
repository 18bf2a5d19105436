// The loop nest of a fused region, as plain data: what backend/cpu/schedule.cpp makes of a region and codegen/ turns into machine code,
// and how that code is called. No graph and no LLVM here.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace muster::cpu {

/// How an argument of a nest is addressed at (row, column).
enum class Access : uint8_t {
  full,        // [rows, width], rows dense
  row,         // [width]
  column,      // [rows]
  scalar,      // one value
  tile,        // of a tile nest, passed apart from the other arguments: the product's f32 sums (input) or the operand made (output)
  column_sum,  // output f32 [width]: added to; the caller zeroes it and sums the parts of the chunks
};
struct Argument {
  Access access = Access::full;
  DType dtype = DType::f32;  // f32, bf16; boolean for a condition (one byte each)
  bool output = false;
};

/// What one instruction computes, for a vector of columns of one row; all arithmetic is f32.
enum class Do : uint8_t {
  load,      // argument `slot`, converted to f32 (boolean: a condition)
  buffer,    // row buffer `slot`, as a store of an earlier stage left it
  reduced,   // row reduction `slot` of an earlier stage, the same in every column
  constant,  // value
  dropout,   // 0 or the scale, for element row * width + column of mask `slot` (core/dropout_mask.h)
  neg,
  exp,
  log,
  sqrt,
  rsqrt,
  tanh,
  erf,
  gelu,             // x * Phi(x)
  gelu_tanh,        // its tanh form
  gelu_slope,       // derivative of gelu at x
  gelu_tanh_slope,  // of its tanh form
  round_bf16,       // to the nearest bf16, ties to even; NaN stays NaN
  add,
  sub,
  mul,
  div,
  maximum,  // NaN in either operand gives NaN
  greater,  // a condition: a > b
  select,   // a (a condition) ? b : c
};

struct Instruction {
  Do what = Do::constant;
  int32_t a = -1, b = -1, c = -1;  // operands: earlier instructions of the same stage
  int32_t slot = -1;
  double value = 0;
};

/// Where a result of a stage goes.
struct Store {
  enum class To : uint8_t {
    argument,  // an output argument; for Access::column the value must be the same in every column
    buffer,    // row buffer `slot`: f32 [width], for later stages
    row_sum,   // row reduction `slot`: the sum over the columns
    row_max,   // the largest; NaN when one is NaN
  };
  To to = To::argument;
  int32_t slot = 0;
  int32_t from = 0;  // instruction
};

/// One loop over the columns of a row. An instruction whose operands are all the same in every column (constants, reductions, scalars,
/// column arguments and what follows from them) is computed once per row.
struct Stage {
  std::vector<Instruction> body;
  std::vector<Store> stores;
};

/// The stream of a mask is given with the call, so that the layers of a model share one function.
struct DropoutMask {
  uint32_t threshold = 0;  // an element is dropped when its 16 bits are below
  float scale = 1.0f;
};

/// For each row: the stages, one after another. A tile nest (an epilogue or a prologue of a product) has one stage, no row reductions and
/// no buffers, and runs on a rectangle of columns; it may start at any column.
struct LoopNest {
  std::string name;  // of the function: letters, digits, _
  bool tile = false;
  int64_t width = 0;  // columns of the whole rows
  std::vector<Argument> arguments;
  std::vector<DropoutMask> masks;
  int32_t buffers = 0, reductions = 0;
  std::vector<Stage> stages;
};

/// One call of generated code, made by one thread. An output does not overlap any other argument.
struct RegionCall {
  void* const* arguments = nullptr;   // in the order of LoopNest::arguments; null for Access::tile
  float* buffers = nullptr;           // buffers * padded_width(width), aligned to 64; null without buffers
  uint16_t* words = nullptr;          // masks * mask_room(width), aligned to 64; null without masks
  uint64_t seed = 0;                  // of dropout
  const uint64_t* streams = nullptr;  // of dropout, one a mask
  /// The 16 bits of elements [first, first + n) of a mask; returns where they start in `room` (mask_room(n) long). May be read up to
  /// 16 words beyond n.
  const uint16_t* (*mask_words)(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, uint16_t* room) = nullptr;
};
constexpr int64_t padded_width(int64_t width) { return (width + 15) / 16 * 16; }
constexpr int64_t mask_room(int64_t width) { return (width + 8 + 128 + 16 + 31) / 32 * 32; }

/// Rows [row_begin, row_end) of a nest.
using RowsFunction = void (*)(const RegionCall* call, int64_t row_begin, int64_t row_end);
/// Epilogue of the tile of sums at [row, row + rows) x [col, col + cols) of the result, or prologue that writes that part of an operand;
/// tile element (i, j) lies at i * stride + j.
using TileFunction = void (*)(const RegionCall* call, float* tile, int64_t stride, int64_t row, int64_t rows, int64_t col, int64_t cols);

}  // namespace muster::cpu
