// Matrix products of the CPU backend: C (+)= A * B with an epilogue, by own packed micro-kernels (AVX2, AVX-512, AMX).
// The bits of an element of C depend only on its row of A, its column of B, the instruction set and the math mode: never on how
// many rows there are, where the row stands, how work is cut or how many threads run. Each element is one chain of sums, k rising.
#pragma once
#include <cstdint>

#include "backend/cpu/loop_nest.h"
#include "backend/cpu/workspace.h"
#include "core/cpu.h"
#include "core/dtype.h"
#include "core/threads.h"

namespace muster::cpu {

struct MatmulKernels;  // matmul_kernels.h: the micro-kernels of one instruction set

/// bf16: operands rounded to bf16 (nearest even), sums in f32: by AMX tiles where isa is amx, by f32 FMA of the rounded values elsewhere.
enum class Math { f32, bf16 };

/// An operand that is made while it is packed: generated code computes parts of its f32 elements, in cache, where they lie (loop_nest.h).
struct Prologue {
  TileFunction function = nullptr;
  const RegionCall* call = nullptr;
};

/// A logical matrix [rows, cols], f32 or bf16. Element (i, j) lies at data[i * stride + j], or at data[j * stride + i] when
/// `transposed`. `stride` is in elements.
struct Operand {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t rows = 0, cols = 0, stride = 0;
  bool transposed = false;
  const Prologue* made = nullptr;  // instead of data, dtype and stride
};

/// The right operand in the micro-kernel's layout, zero padded. Reading it never changes it: threads may share one.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  PackedMatrix(int64_t k, int64_t n, Math math, const MatmulKernels& kernels);  // contents undefined until packed

  [[nodiscard]] int64_t k() const { return k_; }
  [[nodiscard]] int64_t n() const { return n_; }
  [[nodiscard]] Math math() const { return math_; }
  [[nodiscard]] const MatmulKernels& kernels() const { return *kernels_; }
  [[nodiscard]] std::byte* data() const { return buffer_.data(); }
  [[nodiscard]] size_t bytes() const { return buffer_.size(); }

 private:
  int64_t k_ = 0, n_ = 0;
  Math math_ = Math::f32;
  const MatmulKernels* kernels_ = nullptr;
  Buffer buffer_;
};

/// b: [k, n]. Packed once for inference, once per optimizer step in training (`repack`, in place, same sizes).
/// Throws Error(invalid_argument) for a dtype other than f32 and bf16, or a stride shorter than a line.
PackedMatrix pack(const Operand& b, Math math, Isa isa, ThreadPool& pool);
void repack(PackedMatrix& packed, const Operand& b, ThreadPool& pool);

/// What is done with a finished tile of sums while it is in L1: nothing but storing it, or generated code, which then writes every result
/// itself (c is not written).
struct Epilogue {
  TileFunction function = nullptr;    // loop_nest.h
  const RegionCall* calls = nullptr;  // of the rows in steps of rows_per_call: each has partial column sums of its own
  int64_t rows_per_call = 0;
  int64_t row = 0, col = 0;  // of the product's first element in the whole result
};

/// Rows of one call above for a product of `m` rows: as many as never share a step with another thread's part. Depends on sizes and
/// instruction set only, so the partial sums, and their total, do not depend on how work is cut.
int64_t epilogue_rows_per_call(Isa isa, Math math);

/// Limits of the dropout masks in an epilogue.
inline constexpr int64_t kMaxTileMasks = 4, kMaxTileCols = 32;

/// Where the product goes: [m, n] f32 or bf16, stride in elements. With `accumulate` the sums start from what is there.
struct Result {
  void* data = nullptr;
  DType dtype = DType::f32;
  int64_t stride = 0;
  bool accumulate = false;
};

/// How a product is cut for the caches: times depend on it, bits do not.
struct Blocking {
  int64_t rows = 0;  // of one chunk, at most; 0: computed_rows
};
/// Rows whose part of a block of K takes half of the second-level cache.
int64_t computed_rows(Isa isa, Math math, int64_t k);

/// c[m, n] (+)= a[m, k] * b[k, n]. m, n or k may be 0 (k = 0: the sum is zero). c must not overlap an operand.
/// Throws Error(invalid_argument) when sizes, dtypes or strides do not fit.
void matmul(const Operand& a, const PackedMatrix& b, const Result& c, const Epilogue& epilogue, ThreadPool& pool, Workspace& workspace,
            const Blocking& blocking = {});

/// The same with a right operand that changes at every call (weight gradients): packed on the fly.
void matmul(const Operand& a, const Operand& b, Math math, Isa isa, const Result& c, const Epilogue& epilogue, ThreadPool& pool,
            Workspace& workspace, const Blocking& blocking = {});

/// The micro-kernels that `isa` and `math` select.
const MatmulKernels& matmul_kernels(Isa isa, Math math);

/// Compares a small product on AMX tiles with scalar code. To be called once at start where resolve_isa said amx; when it
/// answers false the caller warns and goes on with avx512.
bool amx_self_test();

}  // namespace muster::cpu
