// The safetensors format: a JSON header of names, dtypes, shapes and offsets, then the bytes of all tensors back to back.
// Format: huggingface/safetensors README ("Format"). Which tensors a model wants is the business of models.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace muster::storage {

struct TensorInfo {
  std::string dtype_name;       // as in the file: "F32", "BF16", "F8_E4M3", ...
  std::optional<DType> dtype;   // none for what core/dtype.h does not have (F8_*, U16, ...): such tensors can be listed, not read
  Shape shape;                  // [] is a scalar
  uint64_t begin = 0, end = 0;  // bytes from the end of the header
};

using Metadata = std::map<std::string, std::string>;

/// One mapped file, checked as a whole at open; copies share the mapping. Immutable, so any thread may read.
class SafetensorsFile {
 public:
  /// Throws Error(not_found|io), or Error(corrupt) naming the file, the tensor and what is wrong.
  static SafetensorsFile open(const std::string& path);

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] const std::map<std::string, TensorInfo>& tensors() const;
  [[nodiscard]] const Metadata& metadata() const;
  /// The bytes in place, read-only (data points into the mapping: writing to it faults). Lives as long as a copy of this object.
  /// A tensor that the file holds misaligned for its type was copied at open. Throws Error(not_found|unsupported).
  [[nodiscard]] TensorView view(const std::string& name) const;
  /// A copy in f32 of a F32, F16, BF16 or F64 tensor. Throws Error(not_found|unsupported).
  [[nodiscard]] Tensor load_f32(const std::string& name) const;

 private:
  struct State;
  explicit SafetensorsFile(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

/// The weights of a model folder as one map, whether `model.safetensors` or shards named by `model.safetensors.index.json`.
class WeightFolder {
 public:
  /// Throws Error(not_found) when the folder has neither, Error(corrupt) when a shard lacks a tensor the index names.
  static WeightFolder open(const std::string& folder);

  [[nodiscard]] std::vector<std::string> names() const;  // sorted
  [[nodiscard]] bool contains(const std::string& name) const;
  /// Null when absent.
  [[nodiscard]] const TensorInfo* find(const std::string& name) const;
  /// The file that holds a tensor, for messages. Throws Error(not_found).
  [[nodiscard]] const std::string& file_of(const std::string& name) const;
  [[nodiscard]] TensorView view(const std::string& name) const;
  [[nodiscard]] Tensor load_f32(const std::string& name) const;
  [[nodiscard]] const Metadata& metadata() const;  // of the first file
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  [[nodiscard]] const SafetensorsFile& holder(const std::string& name) const;
  std::string folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t> file_of_;
};

struct NamedTensorView {
  std::string name;
  TensorView tensor;
};

/// Writes the tensors as given (no conversion), atomically and without a second copy in memory. Order in the file: wider element types
/// first, then by name; header padded with spaces to a multiple of 8. Same input, same bytes.
/// Throws Error(invalid_argument) on a name given twice or one that is not UTF-8, Error(io).
void write_safetensors(const std::string& path, const std::vector<NamedTensorView>& tensors, const Metadata& metadata = {{"format", "pt"}});

}  // namespace muster::storage
