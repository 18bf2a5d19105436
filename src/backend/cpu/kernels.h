// The hand-written kernels of the CPU backend, as one table of function pointers per instruction-set level. Matmul has its own header.
// Pointers are dense row-major arrays; DType is the storage type of all `void*` operands of a call (f32 or bf16; math is f32).
// Work is cut at borders that depend only on sizes, and a row depends only on itself: the same bits for any number of threads, any
// batch around a row and any place in it. Sizes may be 0. `out` may be an input (exactly, not shifted) where a comment says "in place".
// Checking indices and shapes is the caller's task unless a comment says otherwise.
#pragma once
#include <cstdint>

#include "backend/cpu/workspace.h"
#include "core/cpu.h"
#include "core/dropout_mask.h"
#include "core/dtype.h"
#include "core/threads.h"

namespace muster::cpu {

/// What every kernel needs besides its operands. A workspace serves one call at a time.
struct KernelContext {
  ThreadPool& pool;
  Workspace& workspace;
};

/// Element-wise functions of one operand. gelu: x * Phi(x); gelu_tanh: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), both of Hendrycks
/// and Gimpel 2016. The f32 functions are within 2 ulp (vec_math.h).
enum class Unary : uint8_t { neg, exp, log, sqrt, rsqrt, tanh, erf, gelu, gelu_tanh };

/// Element-wise functions of (a, b). maximum keeps NaN. The gradients take b = cotangent: gelu_grad: a = x; gelu_tanh_grad: a = x;
/// tanh_grad: a = y = tanh(x), b * (1 - a * a).
enum class Binary : uint8_t { add, sub, mul, div, maximum, gelu_grad, gelu_tanh_grad, tanh_grad };

/// Shape of the right operand of a [rows, width]: like a, one value, one row [width], one column [rows].
enum class Right : uint8_t { same, scalar, row, column };

/// Dropout with the mask of core/dropout_mask.h; rate.threshold == 0 means none.
struct Dropout {
  DropoutRate rate = {};
  uint64_t seed = 0, stream = 0;
};

/// out = gamma * (x - mean(x)) / sqrt(var(x) + eps) + beta, per row [width]. In place: out may be x.
/// Source: Ba, Kiros, Hinton 2016; biased variance as in PyTorch.
struct LayerNorm {
  DType dtype = DType::f32;
  int64_t rows = 0, width = 0;
  const void* x = nullptr;       // [rows, width]
  const float* gamma = nullptr;  // [width]
  const float* beta = nullptr;   // [width]
  float eps = 1e-12f;
  void* out = nullptr;    // [rows, width]
  float* mean = nullptr;  // [rows] or null
  float* rstd = nullptr;  // [rows] 1 / sqrt(var + eps), or null
};

/// With xhat = (x - mean) * rstd, g = ct * gamma: dx = rstd * (g - mean(g) - xhat * mean(g * xhat)); dgamma = sum over rows of ct * xhat;
/// dbeta = sum of ct. In place: dx may be ct.
struct LayerNormGrad {
  DType dtype = DType::f32;
  int64_t rows = 0, width = 0;
  const void* ct = nullptr;     // [rows, width]
  const void* input = nullptr;  // [rows, width] x of the forward
  const float* mean = nullptr;  // [rows]
  const float* rstd = nullptr;  // [rows]
  const float* gamma = nullptr;
  void* dx = nullptr;       // [rows, width]
  float* dgamma = nullptr;  // [width]
  float* dbeta = nullptr;   // [width]
  bool accumulate = false;  // add to dgamma, dbeta instead of overwriting them
};

/// Multi-head self attention over packed sequences: per head, out = dropout(softmax(q k^T / sqrt(head_size))) v inside each sequence.
/// qkv: [T, 3 * heads * head_size] = q | k | v, each [heads, head_size]; cu_seqlens: [sequences + 1] rising, T = its last; out: [T, H];
/// lse: [T, heads] log of the softmax's denominator (scores scaled), or null. Mask index: attention_dropout_index(t, heads, head, key).
/// Throws Error(invalid_argument) when cu_seqlens does not start at 0 or falls, or when dropout meets a sequence over 65,536 tokens.
/// Source: Dao 2023 (FlashAttention-2), section 3.1, on CPU tiles.
struct Attention {
  DType dtype = DType::f32;
  int64_t sequences = 0, heads = 0, head_size = 0;
  const void* qkv = nullptr;
  const int32_t* cu_seqlens = nullptr;
  Dropout dropout = {};
  void* out = nullptr;
  float* lse = nullptr;
};

/// d_qkv [T, 3H] from the forward's qkv, out and lse and the cotangent d_out [T, H]; probabilities are recomputed.
struct AttentionGrad {
  DType dtype = DType::f32;
  int64_t sequences = 0, heads = 0, head_size = 0;
  const void* qkv = nullptr;
  const int32_t* cu_seqlens = nullptr;
  Dropout dropout = {};
  const void* out = nullptr;
  const float* lse = nullptr;
  const void* d_out = nullptr;
  void* d_qkv = nullptr;
};

/// losses[p] = (1 - smoothing) * nll + smoothing / C * sum_c -log softmax(logits[p])_c (PyTorch's label_smoothing).
/// A negative label (PyTorch: -100) is an ignored row: loss 0, gradient 0. A label >= C gives NaN.
struct CrossEntropy {
  DType dtype = DType::f32;
  int64_t rows = 0, classes = 0;
  const void* logits = nullptr;     // [rows, classes]
  const int32_t* labels = nullptr;  // [rows]
  float smoothing = 0.0f;
  float* losses = nullptr;  // [rows]
  float* lse = nullptr;     // [rows] log(sum(exp(logits))), or null
};

/// d_logits = ct[p] * (softmax - (1 - smoothing) * onehot - smoothing / C). In place: d_logits may be logits.
struct CrossEntropyGrad {
  DType dtype = DType::f32;
  int64_t rows = 0, classes = 0;
  const void* logits = nullptr;
  const int32_t* labels = nullptr;
  const float* lse = nullptr;  // [rows] of the forward
  const float* ct = nullptr;   // [rows]
  float smoothing = 0.0f;
  void* d_logits = nullptr;  // [rows, classes]
};

/// One AdamW step (Loshchilov and Hutter 2019, as torch.optim.AdamW): g = grad * grad_scale; p -= lr * weight_decay * p;
/// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; p -= lr / bias_correction1 * m / (sqrt(v) / sqrt(bias_correction2) + eps).
struct AdamW {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.0;
  double bias_correction1 = 1.0, bias_correction2 = 1.0;  // 1 - beta1^step, 1 - beta2^step; steps count from 1
  float grad_scale = 1.0f;                                // clipping
  bool zero_grad = false;                                 // leave grad zeroed
};
/// The arrays of one step, all f32 [n] (or [rows, width] in the row-sparse form); param_bf16 may be null or receives the new param rounded.
struct AdamWArrays {
  float* param = nullptr;
  float* grad = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  BF16* param_bf16 = nullptr;
};

/// One instruction-set level. Every pointer is set.
struct Kernels {
  // --- element-wise; in place
  void (*unary)(const KernelContext&, Unary, DType, const void* x, void* out, int64_t n);
  /// a, out: [rows, width]; b as `Right` says.
  void (*binary)(const KernelContext&, Binary, Right, DType, const void* a, const void* b, void* out, int64_t rows, int64_t width);
  /// out = x * factor.
  void (*scale)(const KernelContext&, DType, const void* x, float factor, void* out, int64_t n);
  /// f32 <-> bf16 (nearest even), or a copy.
  void (*convert)(const KernelContext&, DType from, const void* x, DType to, void* out, int64_t n);
  void (*fill)(const KernelContext&, DType, float value, void* out, int64_t n);
  /// out = condition ? a : b; condition: [n] bytes.
  void (*select)(const KernelContext&, DType, const uint8_t* condition, const void* a, const void* b, void* out, int64_t n);
  /// out = x * dropout_factor(index of the element), forward and backward.
  void (*dropout)(const KernelContext&, DType, const Dropout&, const void* x, void* out, int64_t n);

  /// RegionCall::mask_words: the bits of dropout masks for generated code.
  const uint16_t* (*mask_words)(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, uint16_t* room);

  // --- composites
  void (*layer_norm)(const KernelContext&, const LayerNorm&);
  void (*layer_norm_grad)(const KernelContext&, const LayerNormGrad&);
  void (*attention)(const KernelContext&, const Attention&);
  void (*attention_grad)(const KernelContext&, const AttentionGrad&);
  void (*cross_entropy)(const KernelContext&, const CrossEntropy&);
  void (*cross_entropy_grad)(const KernelContext&, const CrossEntropyGrad&);
  /// Softmax of each row; in place.
  void (*softmax)(const KernelContext&, DType, const void* x, void* out, int64_t rows, int64_t width);

  // --- the machine itself
  /// Independent multiply-adds in registers, fma_probe_flops operations a turn: what a core can do at most. The sum keeps them alive.
  float (*fma_probe)(int64_t turns);
  int64_t fma_probe_flops;

  // --- rows
  /// out[i] = table[ids[i]]; table: [V, width], out: [n, width].
  void (*gather_rows)(const KernelContext&, DType, const void* table, const int32_t* ids, void* out, int64_t n, int64_t width);
  /// table[ids[i]] += rows[i] in the order of i; rows: [n, width] of dtype, table: [V, width] f32.
  void (*scatter_add_rows)(const KernelContext&, DType, const void* rows, const int32_t* ids, float* table, int64_t n, int64_t width);
  /// out[c] (+)= sum over rows of x[r, c]; out f32 [width].
  void (*column_sum)(const KernelContext&, DType, const void* x, float* out, int64_t rows, int64_t width, bool accumulate);
  /// Sum of each row, f32 [rows].
  void (*row_sum)(const KernelContext&, DType, const void* x, float* out, int64_t rows, int64_t width);
  /// Maximum of each row, f32 [rows]; NaN when the row has one; -inf when width is 0.
  void (*row_max)(const KernelContext&, DType, const void* x, float* out, int64_t rows, int64_t width);
  /// Sum of everything.
  float (*sum)(const KernelContext&, DType, const void* x, int64_t n);
  /// out[c, r] = x[r, c]; not in place.
  void (*transpose)(const KernelContext&, DType, const void* x, void* out, int64_t rows, int64_t width);

  // --- optimizer
  void (*adamw)(const KernelContext&, const AdamW&, const AdamWArrays&, int64_t n);
  /// One LAMB step of one tensor (You et al. 2020, algorithm 2, with bias correction, as NVIDIA's FusedLAMB): m and v as AdamW's;
  /// u = m / bias_correction1 / (sqrt(v / bias_correction2) + eps) + weight_decay * p; p -= lr * ratio * u, where ratio is |p| / |u| when
  /// weight_decay is not 0 and neither norm is, else 1. Two passes over memory; the norms are sums in one fixed order.
  void (*lamb)(const KernelContext&, const AdamW&, const AdamWArrays&, int64_t n);
  /// Only the listed rows (distinct) of arrays [*, width]; others are untouched. For a row whose gradient and moments are all zero the
  /// whole step is its decay, so a caller that lists every row with moments and scales the rest by 1 - lr * weight_decay does the exact
  /// step.
  void (*adamw_rows)(const KernelContext&, const AdamW&, const AdamWArrays&, const int32_t* rows, int64_t n_rows, int64_t width);
  /// Sum of x^2 in f64; f32 input.
  double (*sum_of_squares)(const KernelContext&, const float* x, int64_t n);
  /// Whether x holds an infinity or a NaN.
  bool (*has_nonfinite)(const KernelContext&, DType, const void* x, int64_t n);
};

/// The table of a level (amx: the one of avx512, AMX has only matmuls). The level must be one the machine has.
const Kernels& kernels(Isa isa);

}  // namespace muster::cpu
