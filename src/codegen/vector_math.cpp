#include "codegen/vector_math.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <cmath>

namespace muster::codegen {

using llvm::Value;

VectorMath::VectorMath(llvm::IRBuilderBase& builder, unsigned lanes)
    : b_(builder),
      floats_(llvm::FixedVectorType::get(builder.getFloatTy(), lanes)),
      ints_(llvm::FixedVectorType::get(builder.getInt32Ty(), lanes)) {}

Value* VectorMath::bits(Value* x) { return b_.CreateBitCast(x, ints_); }
Value* VectorMath::from_bits(Value* x) { return b_.CreateBitCast(x, floats_); }
Value* VectorMath::splat(float value) { return llvm::ConstantFP::get(floats_, llvm::APFloat(value)); }
Value* VectorMath::splat_bits(uint32_t value) { return llvm::ConstantInt::get(ints_, value); }
Value* VectorMath::fma(Value* a, Value* b, Value* c) { return b_.CreateIntrinsic(llvm::Intrinsic::fma, {floats_}, {a, b, c}); }
Value* VectorMath::sqrt(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); }
Value* VectorMath::absolute(Value* x) { return from_bits(b_.CreateAnd(bits(x), splat_bits(0x7fffffffu))); }

Value* VectorMath::copy_sign(Value* x, Value* sign) {
  return from_bits(b_.CreateOr(b_.CreateAnd(bits(x), splat_bits(0x7fffffffu)), b_.CreateAnd(bits(sign), splat_bits(0x80000000u))));
}

/// NaN passes.
Value* VectorMath::at_most(Value* x, float limit) { return b_.CreateSelect(b_.CreateFCmpOGT(x, splat(limit)), splat(limit), x); }

Value* VectorMath::polynomial(Value* x, std::initializer_list<float> coefficients) {
  Value* sum = nullptr;
  for (const float c : coefficients) sum = sum == nullptr ? splat(c) : fma(sum, x, splat(c));
  return sum;
}

Value* VectorMath::maximum(Value* a, Value* b) {
  Value* larger = b_.CreateSelect(b_.CreateFCmpOGT(a, b), a, b);
  return b_.CreateSelect(b_.CreateFCmpORD(a, a), larger, a);
}

/// exp(x) for x in [-87, 88]; garbage outside.
Value* VectorMath::exp_normal(Value* x) {
  Value* shifted = fma(x, splat(1.44269502f), splat(12582912.0f));  // 1.5 * 2^23: the integer lands in the low bits
  Value* n = b_.CreateFSub(shifted, splat(12582912.0f));
  Value* r = fma(n, splat(-6.93145752e-1f), x);
  r = fma(n, splat(-1.42860677e-6f), r);
  Value* p = polynomial(r, {1.37805939e-3f, 8.37312452e-3f, 4.16695364e-2f, 1.66664720e-1f, 4.99999851e-1f, 1.0f, 1.0f});
  return from_bits(b_.CreateAdd(bits(p), b_.CreateShl(bits(shifted), splat_bits(23))));
}

/// exp(x) for x <= 88; 0 below -87; NaN stays NaN.
Value* VectorMath::exp_flushed(Value* x) { return b_.CreateSelect(b_.CreateFCmpOLT(x, splat(-87.0f)), splat(0.0f), exp_normal(x)); }

Value* VectorMath::exp(Value* x) {
  Value* low = b_.CreateSelect(b_.CreateFCmpOLT(x, splat(-104.0f)), splat(-104.0f), x);  // rounds to 0 below
  Value* in = at_most(low, 89.0f);                                                       // infinity above
  Value* shifted = fma(in, splat(1.44269502f), splat(12582912.0f));
  Value* n = b_.CreateFSub(shifted, splat(12582912.0f));
  Value* r = fma(n, splat(-6.93145752e-1f), in);
  r = fma(n, splat(-1.42860677e-6f), r);
  Value* p = polynomial(r, {1.37805939e-3f, 8.37312452e-3f, 4.16695364e-2f, 1.66664720e-1f, 4.99999851e-1f, 1.0f, 1.0f});
  // 2^n in two factors: n reaches 128 and -150, beyond what one exponent field holds.
  Value* i = b_.CreateSub(bits(shifted), splat_bits(0x4b400000u));
  Value* half = b_.CreateAShr(i, splat_bits(1));
  const auto power = [&](Value* e) { return from_bits(b_.CreateShl(b_.CreateAdd(e, splat_bits(127)), splat_bits(23))); };
  return b_.CreateFMul(b_.CreateFMul(p, power(half)), power(b_.CreateSub(i, half)));
}

Value* VectorMath::log(Value* x) {
  Value* small = b_.CreateFCmpOLT(x, splat(1.17549435e-38f));
  Value* a = b_.CreateSelect(small, b_.CreateFMul(x, splat(8388608.0f)), x);
  Value* e = b_.CreateAnd(b_.CreateSub(bits(a), splat_bits(0x3f2aaaabu)), splat_bits(0xff800000u));  // a = m * 2^e, m in [2/3, 4/3)
  Value* f = b_.CreateFSub(from_bits(b_.CreateSub(bits(a), e)), splat(1.0f));
  Value* s = b_.CreateFMul(f, f);
  Value* i = fma(b_.CreateSIToFP(e, floats_), splat(1.19209290e-7f), b_.CreateSelect(small, splat(-23.0f), splat(0.0f)));
  Value* t = polynomial(s, {0.140869141f, 0.139814854f, 0.200120345f});
  Value* r = polynomial(s, {-0.130310059f, -0.121483512f, -0.166846126f, -0.249996200f});
  r = fma(t, f, r);
  r = fma(r, f, splat(0.333331972f));
  r = fma(r, f, splat(-0.5f));
  r = fma(r, s, f);
  r = fma(i, splat(0.693147182f), r);
  Value* positive = b_.CreateSelect(b_.CreateFCmpOLT(x, splat(INFINITY)), r, b_.CreateFAdd(x, x));  // +inf and NaN are their own results
  Value* negative = b_.CreateSelect(b_.CreateFCmpOLT(x, splat(0.0f)), splat(NAN), splat(-INFINITY));
  return b_.CreateSelect(b_.CreateFCmpOLE(x, splat(0.0f)), negative, positive);
}

Value* VectorMath::erf(Value* x) {
  Value* t = at_most(absolute(x), 4.0f);  // erf(4) rounds to 1
  Value* s = b_.CreateFMul(t, t);
  // Near zero: an odd polynomial. Farther: 1 - exp(polynomial).
  Value* near = polynomial(s, {-5.96761703e-4f, 4.99119423e-3f, -2.67681349e-2f, 1.12819925e-1f, -3.76125336e-1f, 1.28379166e-1f});
  near = fma(near, t, t);
  Value* r = fma(splat(-1.72853470e-5f), t, splat(3.83197126e-4f));
  Value* u = fma(splat(-3.88396438e-3f), t, splat(2.42546219e-2f));
  r = fma(r, s, u);
  r = fma(r, t, splat(-1.06777877e-1f));
  r = fma(r, t, splat(-6.34846687e-1f));
  r = fma(r, t, splat(-1.28717512e-1f));
  r = fma(r, t, b_.CreateFNeg(t));
  Value* far = b_.CreateFSub(splat(1.0f), exp_normal(r));
  return copy_sign(b_.CreateSelect(b_.CreateFCmpOGT(t, splat(0.927734375f)), far, near), x);
}

Value* VectorMath::tanh(Value* x) {
  Value* t = at_most(absolute(x), 10.0f);  // tanh(10) rounds to 1
  Value* s = b_.CreateFMul(t, t);
  Value* near = polynomial(s, {1.57394409e-2f, -5.23025580e-2f, 1.33152470e-1f, -3.33327681e-1f});
  near = fma(b_.CreateFMul(near, s), t, t);
  Value* far = b_.CreateFSub(splat(1.0f), b_.CreateFDiv(splat(2.0f), b_.CreateFAdd(exp_normal(b_.CreateFAdd(t, t)), splat(1.0f))));
  return copy_sign(b_.CreateSelect(b_.CreateFCmpOGT(t, splat(0.55f)), far, near), x);
}

/// x * Phi(x).
Value* VectorMath::gelu(Value* x) {
  Value* half = b_.CreateFMul(splat(0.5f), x);
  return fma(half, erf(b_.CreateFMul(x, splat(0.707106781f))), half);
}

/// Phi(x) + x * phi(x).
Value* VectorMath::gelu_slope(Value* x) {
  Value* cdf = fma(erf(b_.CreateFMul(x, splat(0.707106781f))), splat(0.5f), splat(0.5f));
  Value* density = b_.CreateFMul(exp_flushed(b_.CreateFMul(splat(-0.5f), b_.CreateFMul(x, x))), splat(0.398942280f));
  return fma(x, density, cdf);
}

/// tanh(sqrt(2/pi) * (x + 0.044715 x^3)).
Value* VectorMath::gelu_tanh_inner(Value* x) {
  return tanh(b_.CreateFMul(splat(0.797884561f), fma(b_.CreateFMul(splat(0.044715f), x), b_.CreateFMul(x, x), x)));
}

Value* VectorMath::gelu_tanh(Value* x) {
  Value* half = b_.CreateFMul(splat(0.5f), x);
  return fma(half, gelu_tanh_inner(x), half);
}

Value* VectorMath::gelu_tanh_slope(Value* x) {
  Value* t = gelu_tanh_inner(x);
  Value* inner = b_.CreateFMul(splat(0.797884561f), fma(splat(0.134145f), b_.CreateFMul(x, x), splat(1.0f)));
  Value* rise = b_.CreateFMul(fma(b_.CreateFNeg(t), t, splat(1.0f)), inner);
  Value* half = splat(0.5f);
  return fma(half, b_.CreateFAdd(splat(1.0f), t), b_.CreateFMul(b_.CreateFMul(half, x), rise));
}

Value* VectorMath::bf16_bits(Value* x) {
  Value* u = bits(x);
  Value* odd = b_.CreateAnd(b_.CreateLShr(u, splat_bits(16)), splat_bits(1));
  Value* even = b_.CreateAdd(b_.CreateAdd(u, splat_bits(0x7fffu)), odd);
  Value* quiet = b_.CreateOr(u, splat_bits(0x400000u));
  return b_.CreateAnd(b_.CreateSelect(b_.CreateFCmpORD(x, x), even, quiet), splat_bits(0xffff0000u));
}

}  // namespace muster::codegen
