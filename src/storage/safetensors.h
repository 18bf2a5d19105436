// The safetensors format: a JSON header of names, dtypes, shapes and offsets, then the bytes of all tensors back to back.
// Format: huggingface/safetensors README ("Format"). Which tensors a model wants is the business of models.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
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

/// Hands over the bytes of a tensor that is written, piece by piece: `take` gets them in order. For tensors that change meanwhile.
using TakeBytes = std::function<void(std::span<const std::byte>)>;
using ReadBytes = std::function<void(std::span<const std::byte> bytes, const TakeBytes& take)>;

/// Writes the tensors as given (no conversion), atomically and without a second copy in memory. Order in the file: wider element types
/// first, then by name; header padded with spaces to a multiple of 8. Same input, same bytes.
/// Throws Error(invalid_argument) on a name given twice or one that is not UTF-8, Error(io).
void write_safetensors(const std::string& path, const std::vector<NamedTensorView>& tensors, const Metadata& metadata = {{"format", "pt"}},
                       const ReadBytes& read = {});

/// The weights of a model folder: model.safetensors, or from `max_shard_bytes` on model-00001-of-0000N.safetensors, each of whole tensors
/// and not over that unless one tensor is, with model.safetensors.index.json (format: Transformers' save_pretrained). Whatever marks the
/// folder as complete, the single file or the index, is written last; weights of the other kind go. Throws like write_safetensors.
void write_weight_folder(const std::string& folder, const std::vector<NamedTensorView>& tensors, const ReadBytes& read = {},
                         size_t max_shard_bytes = size_t{5} << 30);
/// Whether `folder` has weights that WeightFolder::open finds.
bool has_weights(const std::string& folder);

}  // namespace muster::storage
