#include "core/tensor.h"

#include <cstdlib>
#include <cstring>

namespace muster {

int64_t element_count(const Shape& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) {
    if (d < 0 || __builtin_mul_overflow(n, d, &n))
      throw Error(ErrorKind::invalid_argument, "[shape] {} has a negative or too large size", to_string(shape));
  }
  return n;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Tensor::Tensor(DType dtype, Shape shape) : view_{dtype, std::move(shape), nullptr} {
  const size_t bytes = (view_.bytes() + 63) / 64 * 64 + 64;
  void* memory = std::aligned_alloc(64, bytes);
  if (memory == nullptr) throw Error(ErrorKind::io, "[tensor] cannot allocate {} bytes for {}", bytes, to_string(view_.shape));
  std::memset(memory, 0, bytes);
  memory_ = std::shared_ptr<void>(memory, std::free);
  view_.data = memory;
}

Tensor Tensor::clone() const {
  Tensor copy(dtype(), shape());
  std::memcpy(copy.data(), data(), bytes());
  return copy;
}

namespace {
double load(const TensorView& t, int64_t i) {
  switch (t.dtype) {
    case DType::f32: return static_cast<const float*>(t.data)[i];
    case DType::f64: return static_cast<const double*>(t.data)[i];
    case DType::bf16: return to_f32(static_cast<const BF16*>(t.data)[i]);
    case DType::f16: return to_f32(static_cast<const F16*>(t.data)[i]);
    default: throw Error(ErrorKind::unsupported, "[convert] {} is not a float type", name_of(t.dtype));
  }
}
void store(const TensorView& t, int64_t i, double value) {
  switch (t.dtype) {
    case DType::f32: static_cast<float*>(t.data)[i] = static_cast<float>(value); return;
    case DType::f64: static_cast<double*>(t.data)[i] = value; return;
    case DType::bf16: static_cast<BF16*>(t.data)[i] = to_bf16(static_cast<float>(value)); return;
    case DType::f16: static_cast<F16*>(t.data)[i] = to_f16(static_cast<float>(value)); return;
    default: throw Error(ErrorKind::unsupported, "[convert] {} is not a float type", name_of(t.dtype));
  }
}
}  // namespace

void convert(const TensorView& from, const TensorView& to) {
  const int64_t n = from.elements();
  MUSTER_ASSERT(n == to.elements());
  if (from.dtype == to.dtype) {
    if (n) std::memcpy(to.data, from.data, from.bytes());
    return;
  }
  // The pairs that whole checkpoints are made of have loops of their own.
  if (from.dtype == DType::bf16 && to.dtype == DType::f32) {
    for (int64_t i = 0; i < n; ++i) static_cast<float*>(to.data)[i] = to_f32(static_cast<const BF16*>(from.data)[i]);
  } else if (from.dtype == DType::f16 && to.dtype == DType::f32) {
    for (int64_t i = 0; i < n; ++i) static_cast<float*>(to.data)[i] = to_f32(static_cast<const F16*>(from.data)[i]);
  } else if (from.dtype == DType::f32 && to.dtype == DType::bf16) {
    for (int64_t i = 0; i < n; ++i) static_cast<BF16*>(to.data)[i] = to_bf16(static_cast<const float*>(from.data)[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) store(to, i, load(from, i));
  }
}

}  // namespace muster
