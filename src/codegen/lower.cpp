#include "codegen/lower.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "codegen/vector_math.h"

namespace muster::codegen {
namespace {

using cpu::Access;
using cpu::Argument;
using cpu::Do;
using cpu::Instruction;
using cpu::LoopNest;
using cpu::Stage;
using cpu::Store;
using llvm::BasicBlock;
using llvm::Value;

constexpr unsigned kUnroll = 2;           // vectors of one turn of the column loop, each with its own partial sums
constexpr int64_t kTileMaskColumns = 32;  // room of a mask in an epilogue (matmul.h kMaxTileCols)

class Lowering {
 public:
  Lowering(const LoopNest& nest, unsigned lanes, llvm::Module& module)
      : nest_(nest), lanes_(lanes), module_(module), b_(module.getContext()), math_(b_, lanes) {}

  void run() {
    declare();
    b_.SetInsertPoint(BasicBlock::Create(module_.getContext(), "entry", function_));
    load_call();
    if (nest_.tile) {
      Value *row = function_->getArg(3), *rows = function_->getArg(4);
      loop(int64(0), rows, 1, "row", [&](Value* i) {
        tile_row_ = b_.CreateGEP(b_.getFloatTy(), function_->getArg(1), b_.CreateMul(i, function_->getArg(2)));
        row_ = b_.CreateAdd(row, i);
        tile_stage(nest_.stages.at(0));
      });
    } else {
      loop(function_->getArg(1), function_->getArg(2), 1, "row", [&](Value* row) {
        row_ = row;
        reduced_.assign(static_cast<size_t>(nest_.reductions), nullptr);
        for (const Stage& stage : nest_.stages) rows_stage(stage);
      });
    }
    b_.CreateRetVoid();
  }

 private:
  llvm::Constant* int64(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }

  void declare() {
    llvm::Type *pointer = b_.getPtrTy(), *number = b_.getInt64Ty();
    std::vector<llvm::Type*> types{pointer, number, number};
    if (nest_.tile) types = {pointer, pointer, number, number, number, number, number};
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), types, false);
    function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, nest_.name, module_);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    function_->setUWTableKind(llvm::UWTableKind::Async);
    function_->addFnAttr("frame-pointer", "all");
    function_->addFnAttr("no-builtins");
    function_->addFnAttr("prefer-vector-width", std::to_string(lanes_ * 32));
  }

  /// The fields of RegionCall (loop_nest.h), in its order.
  void load_call() {
    Value* call = function_->getArg(0);
    const auto field = [&](size_t offset, llvm::Type* type) {
      return b_.CreateLoad(type, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), call, offset));
    };
    Value* pointers = field(offsetof(cpu::RegionCall, arguments), b_.getPtrTy());
    for (size_t i = 0; i < nest_.arguments.size(); ++i)
      arguments_.push_back(nest_.arguments[i].access == Access::tile
                               ? nullptr
                               : b_.CreateLoad(b_.getPtrTy(), b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), pointers, i)));
    if (nest_.buffers > 0) buffers_ = field(offsetof(cpu::RegionCall, buffers), b_.getPtrTy());
    if (nest_.masks.empty()) return;
    words_ = field(offsetof(cpu::RegionCall, words), b_.getPtrTy());
    seed_ = field(offsetof(cpu::RegionCall, seed), b_.getInt64Ty());
    mask_words_ = field(offsetof(cpu::RegionCall, mask_words), b_.getPtrTy());
    Value* streams = field(offsetof(cpu::RegionCall, streams), b_.getPtrTy());
    for (size_t i = 0; i < nest_.masks.size(); ++i)
      streams_.push_back(b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), streams, i)));
  }

  /// for (i = begin; i + step <= end; i += step) body(i); returns i after the loop.
  Value* loop(Value* begin, Value* end, int64_t step, const std::string& name, const std::function<void(Value*)>& body) {
    BasicBlock* before = b_.GetInsertBlock();
    auto* head = BasicBlock::Create(module_.getContext(), name + "_head", function_);
    auto* inside = BasicBlock::Create(module_.getContext(), name, function_);
    auto* after = BasicBlock::Create(module_.getContext(), name + "_end", function_);
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(begin, before);
    Value* next = b_.CreateAdd(i, int64(step));
    b_.CreateCondBr(b_.CreateICmpSLE(next, end), inside, after);
    b_.SetInsertPoint(inside);
    body(i);
    i->addIncoming(next, b_.GetInsertBlock());
    b_.CreateBr(head);
    b_.SetInsertPoint(after);
    return i;
  }

  // --- one stage on one row

  /// What is known about the columns that instructions are emitted for.
  struct Columns {
    Value* first = nullptr;  // column of the first lane, counted from the row's (or the tile's) start
    Value* mask = nullptr;   // live lanes; null: all
  };

  void begin_stage(const Stage& stage, Value* first_column, Value* columns) {
    stage_ = &stage;
    uniform_.assign(stage.body.size(), false);
    values_.assign(stage.body.size(), nullptr);
    row_base_ = b_.CreateMul(row_, int64(nest_.width));
    first_column_ = first_column;
    mask_at_.assign(nest_.masks.size(), nullptr);
    const int64_t room = cpu::mask_room(nest_.tile ? kTileMaskColumns : nest_.width);
    for (const Instruction& i : stage.body) {
      const auto slot = static_cast<size_t>(i.slot);
      if (i.what != Do::dropout || mask_at_[slot] != nullptr) continue;
      auto* type = llvm::FunctionType::get(b_.getPtrTy(),
                                           {b_.getInt64Ty(), b_.getInt64Ty(), b_.getInt64Ty(), b_.getInt64Ty(), b_.getPtrTy()}, false);
      Value* to = b_.CreateConstInBoundsGEP1_64(b_.getInt16Ty(), words_, static_cast<uint64_t>(i.slot * room));
      mask_at_[slot] = b_.CreateCall(type, mask_words_, {seed_, streams_[slot], b_.CreateAdd(row_base_, first_column), columns, to});
    }
    for (size_t k = 0; k < stage.body.size(); ++k) {
      const Instruction& i = stage.body[k];
      bool same = i.what != Do::buffer && i.what != Do::dropout;
      if (i.what == Do::load) {
        const Access access = argument(i).access;
        same = access == Access::scalar || access == Access::column;
      }
      for (const int32_t operand : {i.a, i.b, i.c}) same = same && (operand < 0 || uniform_[static_cast<size_t>(operand)]);
      uniform_[k] = same;
      if (same) values_[k] = emit(i, {});
    }
    for (const Store& s : stage.stores)
      if (s.to == Store::To::argument && nest_.arguments[static_cast<size_t>(s.slot)].access == Access::column) store_column(s);
  }

  void tile_stage(const Stage& stage) {
    Value *col = function_->getArg(5), *cols = function_->getArg(6);
    begin_stage(stage, col, cols);
    Value* rest = loop(int64(0), cols, lanes_, "columns", [&](Value* j) { (void)vector({j, nullptr}); });
    auto* tail = BasicBlock::Create(module_.getContext(), "tail", function_);
    auto* after = BasicBlock::Create(module_.getContext(), "tail_end", function_);
    b_.CreateCondBr(b_.CreateICmpSLT(rest, cols), tail, after);
    b_.SetInsertPoint(tail);
    (void)vector({rest, lane_mask(b_.CreateTrunc(b_.CreateSub(cols, rest), b_.getInt32Ty()))});
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  void rows_stage(const Stage& stage) {
    begin_stage(stage, int64(0), int64(nest_.width));
    std::vector<const Store*> reductions;
    bool per_column = false;
    for (const Store& s : stage.stores) {
      if (s.to == Store::To::row_sum || s.to == Store::To::row_max) reductions.push_back(&s);
      per_column = per_column || s.to != Store::To::argument || nest_.arguments[static_cast<size_t>(s.slot)].access != Access::column;
    }
    if (!per_column) return;
    // sums[unroll][reduction]
    std::array<std::vector<Value*>, kUnroll> sums;
    for (auto& part : sums)
      for (const Store* s : reductions) part.push_back(math_.splat(s->to == Store::To::row_sum ? 0.0f : -INFINITY));
    const auto take = [&](std::vector<Value*>& part, const Columns& columns) {
      const std::vector<Value*> values = vector(columns);
      for (size_t k = 0; k < reductions.size(); ++k) {
        Value* v = values[static_cast<size_t>(reductions[k]->from)];
        const bool sum = reductions[k]->to == Store::To::row_sum;
        if (columns.mask != nullptr) v = b_.CreateSelect(columns.mask, v, math_.splat(sum ? 0.0f : -INFINITY));
        part[k] = sum ? b_.CreateFAdd(part[k], v) : math_.maximum(part[k], v);
      }
    };
    const int64_t turn = static_cast<int64_t>(kUnroll * lanes_), turns = nest_.width / turn;
    if (turns > 1) {
      main_loop(turns * turn, sums, take);
    } else if (turns == 1) {
      for (unsigned u = 0; u < kUnroll; ++u) take(sums[u], {int64(u * lanes_), nullptr});
    }
    int64_t j = turns * turn;
    for (; j + lanes_ <= nest_.width; j += lanes_) take(sums[0], {int64(j), nullptr});
    if (j < nest_.width) take(sums[1], {int64(j), lane_mask(b_.getInt32(static_cast<uint32_t>(nest_.width - j)))});
    for (size_t k = 0; k < reductions.size(); ++k) {
      const bool sum = reductions[k]->to == Store::To::row_sum;
      const auto join = [&](Value* a, Value* c) { return sum ? b_.CreateFAdd(a, c) : math_.maximum(a, c); };
      reduced_[static_cast<size_t>(reductions[k]->slot)] = over_lanes(join(sums[0][k], sums[1][k]), join);
    }
  }

  void main_loop(int64_t end, std::array<std::vector<Value*>, kUnroll>& sums,
                 const std::function<void(std::vector<Value*>&, const Columns&)>& take) {
    BasicBlock* before = b_.GetInsertBlock();
    auto* inside = BasicBlock::Create(module_.getContext(), "columns", function_);
    auto* after = BasicBlock::Create(module_.getContext(), "columns_end", function_);
    b_.CreateBr(inside);
    b_.SetInsertPoint(inside);
    llvm::PHINode* j = b_.CreatePHI(b_.getInt64Ty(), 2);
    j->addIncoming(int64(0), before);
    std::vector<std::pair<llvm::PHINode*, Value**>> carried;
    for (auto& part : sums)
      for (Value*& v : part) {
        llvm::PHINode* phi = b_.CreatePHI(math_.floats(), 2);
        phi->addIncoming(v, before);
        v = phi;
        carried.emplace_back(phi, &v);
      }
    for (unsigned u = 0; u < kUnroll; ++u) take(sums[u], {b_.CreateAdd(j, int64(u * lanes_)), nullptr});
    Value* next = b_.CreateAdd(j, int64(kUnroll * lanes_));
    for (auto& [phi, v] : carried) phi->addIncoming(*v, b_.GetInsertBlock());
    j->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpULT(next, int64(end)), inside, after);
    b_.SetInsertPoint(after);
  }

  Value* lane_mask(Value* live) {
    std::vector<llvm::Constant*> numbers;
    for (unsigned i = 0; i < lanes_; ++i) numbers.push_back(b_.getInt32(i));
    return b_.CreateICmpULT(llvm::ConstantVector::get(numbers), b_.CreateVectorSplat(lanes_, live));
  }

  /// All lanes joined, pairs of halves first, in every lane.
  Value* over_lanes(Value* v, const std::function<Value*(Value*, Value*)>& join) {
    for (unsigned width = lanes_ / 2; width > 0; width /= 2) {
      std::vector<int> moved(lanes_);
      for (unsigned i = 0; i < lanes_; ++i) moved[i] = static_cast<int>((i + width) % lanes_);
      v = join(v, b_.CreateShuffleVector(v, moved));
    }
    return b_.CreateVectorSplat(lanes_, b_.CreateExtractElement(v, uint64_t{0}));
  }

  /// The stage's instructions and stores for one vector of columns; the values of the instructions.
  std::vector<Value*> vector(const Columns& columns) {
    for (size_t k = 0; k < stage_->body.size(); ++k)
      if (!uniform_[k]) values_[k] = emit(stage_->body[k], columns);
    for (const Store& s : stage_->stores) {
      Value* v = values_[static_cast<size_t>(s.from)];
      if (s.to == Store::To::buffer) put(v, buffer_at(s.slot, columns.first), math_.floats(), columns.mask);
      if (s.to != Store::To::argument) continue;
      const Argument& a = nest_.arguments[static_cast<size_t>(s.slot)];
      if (a.access == Access::column) continue;
      Value* to = address(s.slot, columns.first);
      if (a.access == Access::column_sum) v = b_.CreateFAdd(get(to, math_.floats(), columns.mask), v);
      if (a.dtype == DType::bf16) {
        auto* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), lanes_);
        put(b_.CreateTrunc(b_.CreateLShr(math_.bf16_bits(v), 16), halves), to, halves, columns.mask);
      } else {
        put(v, to, math_.floats(), columns.mask);
      }
    }
    return values_;
  }

  // --- memory

  const Argument& argument(const Instruction& i) const { return nest_.arguments[static_cast<size_t>(i.slot)]; }

  llvm::Type* element(DType dtype) {
    return dtype == DType::f32 ? b_.getFloatTy() : dtype == DType::bf16 ? b_.getInt16Ty() : static_cast<llvm::Type*>(b_.getInt8Ty());
  }

  /// Of argument `slot` at (row, column).
  Value* address(int32_t slot, Value* column) {
    const Argument& a = nest_.arguments[static_cast<size_t>(slot)];
    if (a.access == Access::tile) return b_.CreateGEP(b_.getFloatTy(), tile_row_, column);
    Value* base = arguments_[static_cast<size_t>(slot)];
    switch (a.access) {
      case Access::scalar: return base;
      case Access::column: return b_.CreateGEP(element(a.dtype), base, row_);
      case Access::full: base = b_.CreateGEP(element(a.dtype), base, row_base_); break;
      default: break;
    }
    if (nest_.tile) base = b_.CreateGEP(element(a.dtype), base, first_column_);
    return b_.CreateGEP(element(a.dtype), base, column);
  }

  Value* buffer_at(int32_t slot, Value* column) {
    Value* base = b_.CreateConstInBoundsGEP1_64(b_.getFloatTy(), buffers_, static_cast<uint64_t>(slot * cpu::padded_width(nest_.width)));
    return b_.CreateGEP(b_.getFloatTy(), base, column);
  }

  Value* get(Value* from, llvm::Type* type, Value* mask) {
    const llvm::Align align(type->getScalarSizeInBits() / 8);
    if (mask == nullptr) return b_.CreateAlignedLoad(type, from, align);
    return b_.CreateMaskedLoad(type, from, align, mask, llvm::Constant::getNullValue(type));
  }
  void put(Value* v, Value* to, llvm::Type* type, Value* mask) {
    const llvm::Align align(type->getScalarSizeInBits() / 8);
    if (mask == nullptr)
      b_.CreateAlignedStore(v, to, align);
    else
      b_.CreateMaskedStore(v, to, align, mask);
  }

  Value* load(const Instruction& i, const Columns& columns) {
    const Argument& a = argument(i);
    llvm::Type* one = element(a.dtype);
    Value* from = address(i.slot, columns.first);
    if (a.access == Access::scalar || a.access == Access::column) {
      return widen(b_.CreateVectorSplat(lanes_, b_.CreateLoad(one, from)), a.dtype);
    }
    return widen(get(from, llvm::FixedVectorType::get(one, lanes_), columns.mask), a.dtype);
  }

  Value* widen(Value* v, DType dtype) {
    if (dtype == DType::f32) return v;
    if (dtype == DType::bf16) return math_.from_bits(b_.CreateShl(b_.CreateZExt(v, math_.ints()), 16));
    return b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  }

  /// A uniform value into [rows].
  void store_column(const Store& s) {
    const Argument& a = nest_.arguments[static_cast<size_t>(s.slot)];
    Value* v = values_[static_cast<size_t>(s.from)];
    Value* to = address(s.slot, nullptr);
    if (a.dtype == DType::bf16)
      b_.CreateStore(b_.CreateTrunc(b_.CreateLShr(b_.CreateExtractElement(math_.bf16_bits(v), uint64_t{0}), 16), b_.getInt16Ty()), to);
    else
      b_.CreateStore(b_.CreateExtractElement(v, uint64_t{0}), to);
  }

  // --- instructions

  Value* mask_factor(const Instruction& i, const Columns& columns) {
    const auto slot = static_cast<size_t>(i.slot);
    const cpu::DropoutMask& mask = nest_.masks[slot];
    auto* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), lanes_);
    // May be read beyond the row (loop_nest.h), so a tail needs no mask.
    Value* words = b_.CreateZExt(b_.CreateAlignedLoad(halves, b_.CreateGEP(b_.getInt16Ty(), mask_at_[slot], columns.first), llvm::Align(2)),
                                 math_.ints());
    Value* dropped = b_.CreateICmpULT(words, llvm::ConstantInt::get(math_.ints(), mask.threshold));
    return b_.CreateSelect(dropped, math_.splat(0.0f), math_.splat(mask.scale));
  }

  Value* emit(const Instruction& i, const Columns& columns) {
    const auto in = [&](int32_t operand) { return values_[static_cast<size_t>(operand)]; };
    switch (i.what) {
      case Do::load: return load(i, columns);
      case Do::buffer: return get(buffer_at(i.slot, columns.first), math_.floats(), columns.mask);
      case Do::reduced: return reduced_[static_cast<size_t>(i.slot)];
      case Do::constant: return math_.splat(static_cast<float>(i.value));
      case Do::dropout: return mask_factor(i, columns);
      case Do::neg: return b_.CreateFNeg(in(i.a));
      case Do::exp: return math_.exp(in(i.a));
      case Do::log: return math_.log(in(i.a));
      case Do::sqrt: return math_.sqrt(in(i.a));
      case Do::rsqrt: return b_.CreateFDiv(math_.splat(1.0f), math_.sqrt(in(i.a)));
      case Do::tanh: return math_.tanh(in(i.a));
      case Do::erf: return math_.erf(in(i.a));
      case Do::gelu: return math_.gelu(in(i.a));
      case Do::gelu_tanh: return math_.gelu_tanh(in(i.a));
      case Do::gelu_slope: return math_.gelu_slope(in(i.a));
      case Do::gelu_tanh_slope: return math_.gelu_tanh_slope(in(i.a));
      case Do::round_bf16: return math_.from_bits(math_.bf16_bits(in(i.a)));
      case Do::add: return b_.CreateFAdd(in(i.a), in(i.b));
      case Do::sub: return b_.CreateFSub(in(i.a), in(i.b));
      case Do::mul: return b_.CreateFMul(in(i.a), in(i.b));
      case Do::div: return b_.CreateFDiv(in(i.a), in(i.b));
      case Do::maximum: return math_.maximum(in(i.a), in(i.b));
      case Do::greater: return b_.CreateFCmpOGT(in(i.a), in(i.b));
      case Do::select: return b_.CreateSelect(in(i.a), in(i.b), in(i.c));
    }
    llvm_unreachable("an instruction without code");
  }

  const LoopNest& nest_;
  unsigned lanes_;
  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  VectorMath math_;
  llvm::Function* function_ = nullptr;
  std::vector<Value*> arguments_, streams_;
  Value *buffers_ = nullptr, *words_ = nullptr, *seed_ = nullptr, *mask_words_ = nullptr;
  // Of the row and the stage at work:
  Value *row_ = nullptr, *row_base_ = nullptr, *tile_row_ = nullptr, *first_column_ = nullptr;
  const Stage* stage_ = nullptr;
  std::vector<bool> uniform_;
  std::vector<Value*> values_, reduced_, mask_at_;
};

}  // namespace

void lower(const LoopNest& nest, unsigned lanes, llvm::Module& module) { Lowering(nest, lanes, module).run(); }

}  // namespace muster::codegen
