// Writing safetensors: the header in the reference writer's order and spelling, then each tensor's bytes straight from where they are.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "storage/file.h"
#include "storage/safetensors.h"

namespace muster::storage {
namespace {

struct WrittenType {
  std::string_view name;
  int rank;  // the reference writer's order: wider alignment first
};
WrittenType written_type(DType dtype) {
  switch (dtype) {
    case DType::i64: return {"I64", 0};
    case DType::f64: return {"F64", 1};
    case DType::f32: return {"F32", 2};
    case DType::i32: return {"I32", 3};
    case DType::bf16: return {"BF16", 4};
    case DType::f16: return {"F16", 5};
    case DType::u8: return {"U8", 6};
    case DType::boolean: return {"BOOL", 7};
  }
  MUSTER_ASSERT(!"a dtype");
}

std::string quoted(const std::string& text, const std::string& path) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::invalid_argument, "cannot write {}: the name '{}' is not valid UTF-8", path, text);
  }
}

std::string header_of(const std::vector<const NamedTensorView*>& order, const Metadata& metadata, const std::string& path) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) text += (text.back() == '{' ? "" : ",") + quoted(key, path) + ":" + quoted(value, path);
    text += "}";
  }
  size_t position = 0;
  for (const NamedTensorView* item : order) {
    const TensorView& tensor = item->tensor;
    const size_t end = position + tensor.bytes();
    text += text.size() == 1 ? "" : ",";
    text += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[", quoted(item->name, path), written_type(tensor.dtype).name);
    for (size_t i = 0; i < tensor.shape.size(); ++i) text += fmt::format("{}{}", i ? "," : "", tensor.shape[i]);
    text += fmt::format("],\"data_offsets\":[{},{}]}}", position, end);
    position = end;
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<NamedTensorView>& tensors, const Metadata& metadata,
                       const ReadBytes& read) {
  std::vector<const NamedTensorView*> order;
  for (const NamedTensorView& item : tensors) {
    MUSTER_ASSERT(item.tensor.data != nullptr || item.tensor.bytes() == 0);
    order.push_back(&item);
  }
  std::sort(order.begin(), order.end(), [](const NamedTensorView* a, const NamedTensorView* b) {
    return std::pair(written_type(a->tensor.dtype).rank, std::string_view(a->name)) <
           std::pair(written_type(b->tensor.dtype).rank, std::string_view(b->name));
  });
  std::vector<std::string_view> names;
  for (const NamedTensorView& item : tensors) names.push_back(item.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end() || std::binary_search(names.begin(), names.end(), std::string_view("__metadata__")))
    throw Error(ErrorKind::invalid_argument, "cannot write {}: the tensor name '{}' is given twice or reserved", path,
                twice != names.end() ? *twice : std::string_view("__metadata__"));

  const std::string header = header_of(order, metadata, path);
  const uint64_t length = header.size();
  AtomicFile file(path, "weights");
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  const TakeBytes take = [&](std::span<const std::byte> bytes) { file.write(bytes); };
  for (const NamedTensorView* item : order) {
    const std::span bytes(static_cast<const std::byte*>(item->tensor.data), item->tensor.bytes());
    read ? read(bytes, take) : take(bytes);
  }
  file.commit();
}

}  // namespace muster::storage
