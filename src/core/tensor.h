// Dense row-major tensors: an owner (Tensor) and a non-owning view (TensorView). No arithmetic here.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"

namespace muster {

using Shape = std::vector<int64_t>;

/// Product of the dimensions; 1 for rank 0. Throws Error(invalid_argument) on a negative dimension or overflow.
int64_t element_count(const Shape& shape);
/// "[2, 384]"
std::string to_string(const Shape& shape);

struct TensorView {
  DType dtype = DType::f32;
  Shape shape;
  void* data = nullptr;

  [[nodiscard]] int64_t elements() const { return element_count(shape); }
  [[nodiscard]] size_t bytes() const { return static_cast<size_t>(elements()) * size_of(dtype); }
  /// The elements as T; T must be the dtype's type.
  template <typename T>
  [[nodiscard]] std::span<T> as() const {
    MUSTER_ASSERT(DTypeOf<std::remove_const_t<T>>::value == dtype);
    return {static_cast<T*>(data), static_cast<size_t>(elements())};
  }
};

/// Owns 64-byte aligned memory, zeroed at creation; copies share it.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Shape shape);
  template <typename T>
  static Tensor from(const std::vector<T>& values, Shape shape) {
    Tensor t(DTypeOf<T>::value, std::move(shape));
    MUSTER_ASSERT(static_cast<int64_t>(values.size()) == t.elements());
    std::copy(values.begin(), values.end(), t.as<T>().begin());
    return t;
  }

  [[nodiscard]] bool defined() const { return memory_ != nullptr; }
  [[nodiscard]] DType dtype() const { return view_.dtype; }
  [[nodiscard]] const Shape& shape() const { return view_.shape; }
  [[nodiscard]] int64_t elements() const { return view_.elements(); }
  [[nodiscard]] size_t bytes() const { return view_.bytes(); }
  [[nodiscard]] void* data() const { return view_.data; }
  [[nodiscard]] const TensorView& view() const { return view_; }
  template <typename T>
  [[nodiscard]] std::span<T> as() const {
    return view_.as<T>();
  }
  /// A deep copy.
  [[nodiscard]] Tensor clone() const;

 private:
  TensorView view_;
  std::shared_ptr<void> memory_;
};

/// Element-wise copy with conversion between float types. Sizes must agree.
void convert(const TensorView& from, const TensorView& to);

}  // namespace muster
