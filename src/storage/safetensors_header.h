// The header of a safetensors file as data, and the checks that make the rest safe to map. Inside this room only.
#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "storage/safetensors.h"

namespace muster::storage {

struct SafetensorsHeader {
  std::map<std::string, TensorInfo> tensors;
  Metadata metadata;
  uint64_t data_begin = 0;  // where the tensors' bytes start in the file
};

/// Parses and checks a whole file: length, JSON, keys given once, known dtypes, sizes, and offsets that tile the data exactly.
/// Throws Error(corrupt) naming `path` and the tensor.
SafetensorsHeader parse_safetensors(std::span<const std::byte> file, const std::string& path);

}  // namespace muster::storage
