// The kernels of one instruction-set level, by name, and the table that gathers them. What they compute: kernels.h.
#pragma once
#include "backend/cpu/kernels.h"

namespace muster::cpu {
namespace avx2 {
const Kernels& table();
}
namespace avx512 {
const Kernels& table();
}

#ifdef MUSTER_ISA_NAMESPACE
namespace MUSTER_ISA_NAMESPACE {

using Context = KernelContext;
const Kernels& table();

void unary(const Context&, Unary, DType, const void* x, void* out, int64_t n);
void binary(const Context&, Binary, Right, DType, const void* a, const void* b, void* out, int64_t rows, int64_t width);
void scale(const Context&, DType, const void* x, float factor, void* out, int64_t n);
void convert(const Context&, DType from, const void* x, DType to, void* out, int64_t n);
void fill(const Context&, DType, float value, void* out, int64_t n);
void select(const Context&, DType, const uint8_t* condition, const void* a, const void* b, void* out, int64_t n);
void dropout(const Context&, DType, const Dropout&, const void* x, void* out, int64_t n);
const uint16_t* mask_words(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, uint16_t* room);
void layer_norm(const Context&, const LayerNorm&);
void layer_norm_grad(const Context&, const LayerNormGrad&);
void attention(const Context&, const Attention&);
void attention_grad(const Context&, const AttentionGrad&);
void cross_entropy(const Context&, const CrossEntropy&);
void cross_entropy_grad(const Context&, const CrossEntropyGrad&);
void softmax(const Context&, DType, const void* x, void* out, int64_t rows, int64_t width);
inline constexpr int kProbeChains = 12;
float fma_probe(int64_t turns);
void gather_rows(const Context&, DType, const void* table, const int32_t* ids, void* out, int64_t n, int64_t width);
void scatter_add_rows(const Context&, DType, const void* rows, const int32_t* ids, float* table, int64_t n, int64_t width);
void column_sum(const Context&, DType, const void* x, float* out, int64_t rows, int64_t width, bool accumulate);
void row_sum(const Context&, DType, const void* x, float* out, int64_t rows, int64_t width);
void row_max(const Context&, DType, const void* x, float* out, int64_t rows, int64_t width);
float sum(const Context&, DType, const void* x, int64_t n);
void transpose(const Context&, DType, const void* x, void* out, int64_t rows, int64_t width);
void adamw(const Context&, const AdamW&, const AdamWArrays&, int64_t n);
void lamb(const Context&, const AdamW&, const AdamWArrays&, int64_t n);
void adamw_rows(const Context&, const AdamW&, const AdamWArrays&, const int32_t* rows, int64_t n_rows, int64_t width);
double sum_of_squares(const Context&, const float* x, int64_t n);
bool has_nonfinite(const Context&, DType, const void* x, int64_t n);

}  // namespace MUSTER_ISA_NAMESPACE
#endif
}  // namespace muster::cpu
