// An open safetensors file: views into the mapping, and copies converted to f32.
#include <bit>
#include <cstring>
#include <utility>

#include "storage/file.h"
#include "storage/safetensors.h"
#include "storage/safetensors_header.h"

namespace muster::storage {

struct SafetensorsFile::State {
  std::string path;
  MappedFile file;
  SafetensorsHeader header;
  std::map<std::string, Tensor> aligned;  // copies of what lies misaligned in the file
};

SafetensorsFile::SafetensorsFile(std::shared_ptr<const State> state) : state_(std::move(state)) {}

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  MappedFile file(path);
  SafetensorsHeader header = parse_safetensors(file.bytes(), path);
  std::map<std::string, Tensor> aligned;
  for (const auto& [name, info] : header.tensors) {
    if (!info.dtype || info.begin == info.end || (header.data_begin + info.begin) % size_of(*info.dtype) == 0) continue;
    Tensor copy(*info.dtype, info.shape);
    std::memcpy(copy.data(), file.bytes().data() + header.data_begin + info.begin, copy.bytes());
    aligned.emplace(name, std::move(copy));
  }
  return SafetensorsFile(std::make_shared<const State>(State{path, std::move(file), std::move(header), std::move(aligned)}));
}

const std::string& SafetensorsFile::path() const { return state_->path; }
const std::map<std::string, TensorInfo>& SafetensorsFile::tensors() const { return state_->header.tensors; }
const Metadata& SafetensorsFile::metadata() const { return state_->header.metadata; }

TensorView SafetensorsFile::view(const std::string& name) const {
  const auto found = tensors().find(name);
  if (found == tensors().end()) throw Error(ErrorKind::not_found, "{}: no tensor '{}'", path(), name);
  const TensorInfo& info = found->second;
  if (!info.dtype)
    throw Error(ErrorKind::unsupported, "{}: tensor '{}' is {}; muster reads F32, F16, BF16, F64, I32, I64, U8 and BOOL", path(), name,
                info.dtype_name);
  if (const auto copy = state_->aligned.find(name); copy != state_->aligned.end()) return copy->second.view();
  const std::byte* data = state_->file.bytes().data() + state_->header.data_begin + info.begin;
  return {*info.dtype, info.shape, const_cast<std::byte*>(data)};
}

namespace {
/// As core's to_f32(F16), without branches: the exponent is moved by a multiplication, so that subnormals come out right by themselves.
float half_to_f32(uint16_t half) {
  const uint32_t magnitude = static_cast<uint32_t>(half & 0x7fffu) << 13;
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const uint32_t bits = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : finite;
  return std::bit_cast<float>(bits | static_cast<uint32_t>(half & 0x8000u) << 16);
}
}  // namespace

Tensor SafetensorsFile::load_f32(const std::string& name) const {
  const TensorView from = view(name);
  if (!is_float(from.dtype))
    throw Error(ErrorKind::unsupported, "{}: tensor '{}' is {}, not floating point", path(), name, name_of(from.dtype));
  Tensor result(DType::f32, from.shape);
  const auto n = static_cast<size_t>(result.elements());
  float* const to = result.as<float>().data();
  switch (from.dtype) {
    case DType::bf16: {
      const auto* data = static_cast<const uint16_t*>(from.data);
      for (size_t i = 0; i < n; ++i) to[i] = to_f32(BF16{data[i]});
      break;
    }
    case DType::f16: {
      const auto* data = static_cast<const uint16_t*>(from.data);
      for (size_t i = 0; i < n; ++i) to[i] = half_to_f32(data[i]);
      break;
    }
    case DType::f64: {
      const auto* data = static_cast<const double*>(from.data);
      for (size_t i = 0; i < n; ++i) to[i] = static_cast<float>(data[i]);
      break;
    }
    default: convert(from, result.view()); break;
  }
  return result;
}

}  // namespace muster::storage
