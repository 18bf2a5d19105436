// exp, log, erf, tanh, GELU and their like as LLVM IR on vectors of f32: the polynomials of backend/cpu/vec_math.h, at most 2 ulp from the
// correctly rounded value over all of f32. Lanes are independent; nothing here knows a machine.
// Source of the polynomials: N. Juffa's public minimax fits (NVIDIA forums, Stack Overflow 47097460, 39587752, 35148198).
#pragma once
#include <cstdint>
#include <initializer_list>

namespace llvm {
class FixedVectorType;
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace muster::codegen {

class VectorMath {
 public:
  VectorMath(llvm::IRBuilderBase& builder, unsigned lanes);

  [[nodiscard]] llvm::FixedVectorType* floats() const { return floats_; }
  [[nodiscard]] llvm::FixedVectorType* ints() const { return ints_; }

  llvm::Value* splat(float value);
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* exp(llvm::Value* x);
  llvm::Value* log(llvm::Value* x);
  llvm::Value* sqrt(llvm::Value* x);
  llvm::Value* erf(llvm::Value* x);
  llvm::Value* tanh(llvm::Value* x);
  llvm::Value* maximum(llvm::Value* a, llvm::Value* b);  // NaN in either operand gives NaN
  llvm::Value* gelu(llvm::Value* x);
  llvm::Value* gelu_slope(llvm::Value* x);
  llvm::Value* gelu_tanh(llvm::Value* x);
  llvm::Value* gelu_tanh_slope(llvm::Value* x);
  /// The bits of the nearest bf16, ties to even, in the high half of each lane (an i32 vector); NaN stays NaN.
  llvm::Value* bf16_bits(llvm::Value* x);

  llvm::Value* bits(llvm::Value* x);  // as i32, and back
  llvm::Value* from_bits(llvm::Value* x);

 private:
  llvm::Value* splat_bits(uint32_t value);
  llvm::Value* absolute(llvm::Value* x);
  llvm::Value* copy_sign(llvm::Value* x, llvm::Value* sign);
  llvm::Value* at_most(llvm::Value* x, float limit);
  llvm::Value* exp_normal(llvm::Value* x);
  llvm::Value* exp_flushed(llvm::Value* x);
  llvm::Value* gelu_tanh_inner(llvm::Value* x);
  /// c[0], then fma(that, x, c[i]) for the others.
  llvm::Value* polynomial(llvm::Value* x, std::initializer_list<float> coefficients);

  llvm::IRBuilderBase& b_;
  llvm::FixedVectorType *floats_, *ints_;
};

}  // namespace muster::codegen
