// Parsing and checking the header: everything that a broken or hostile file could get wrong is refused here, once.
#include "storage/safetensors_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "storage/printable.h"

namespace muster::storage {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000;  // as the reference implementation

struct FileType {
  std::string_view name;
  unsigned bits;
  std::optional<DType> dtype;
};
constexpr std::array<FileType, 22> kTypes{{
    {"BOOL", 8, DType::boolean},
    {"F4", 4, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"U8", 8, DType::u8},
    {"I8", 8, {}},
    {"F8_E5M2", 8, {}},
    {"F8_E4M3", 8, {}},
    {"F8_E8M0", 8, {}},
    {"F8_E4M3FNUZ", 8, {}},
    {"F8_E5M2FNUZ", 8, {}},
    {"I16", 16, {}},
    {"U16", 16, {}},
    {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},
    {"I32", 32, DType::i32},
    {"U32", 32, {}},
    {"F32", 32, DType::f32},
    {"C64", 64, {}},
    {"F64", 64, DType::f64},
    {"I64", 64, DType::i64},
    {"U64", 64, {}},
}};

const FileType* find_type(std::string_view name) {
  const auto* const found = std::find_if(kTypes.begin(), kTypes.end(), [&](const FileType& t) { return t.name == name; });
  return found == kTypes.end() ? nullptr : found;
}

/// Walks {"__metadata__": {string: string}, name: {"dtype": string, "shape": [n...], "data_offsets": [begin, end]}} without building a
/// tree, so that a key given twice is seen and memory stays near the size of the header.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(SafetensorsHeader& header, const std::string& path) : header_(header), path_(path) {}

  bool start_object(std::size_t /*size*/) override {
    if (depth_ == 0 && !in_array_) return ++depth_, true;
    if (depth_ == 1) {
      info_ = {};
      seen_dtype_ = seen_shape_ = seen_offsets_ = false;
      return ++depth_, true;
    }
    fail("an object");
  }
  bool end_object() override {
    if (--depth_ == 1 && !is_metadata()) finish_tensor();
    return true;
  }
  bool key(string_t& key) override {
    if (depth_ == 1) {
      name_ = key;
      if (is_metadata() ? std::exchange(seen_metadata_, true) : header_.tensors.contains(name_)) corrupt("is given twice");
      return true;
    }
    field_ = key;
    if (is_metadata()) {
      if (header_.metadata.contains(field_)) corrupt("has the key '{}' twice", printable(field_));
      return true;
    }
    bool* seen = field_ == "dtype" ? &seen_dtype_ : field_ == "shape" ? &seen_shape_ : field_ == "data_offsets" ? &seen_offsets_ : nullptr;
    if (seen == nullptr) corrupt("has an unknown key '{}'", printable(field_));
    if (std::exchange(*seen, true)) corrupt("has the key '{}' twice", printable(field_));
    return true;
  }
  bool string(string_t& value) override {
    if (depth_ == 2 && is_metadata()) {
      header_.metadata.emplace(field_, value);
      return true;
    }
    if (depth_ != 2 || in_array_ || field_ != "dtype") fail("a string");
    info_.dtype_name = value;
    return true;
  }
  bool start_array(std::size_t /*size*/) override {
    if (depth_ != 2 || in_array_ || is_metadata() || (field_ != "shape" && field_ != "data_offsets")) fail("an array");
    in_array_ = true;
    offsets_ = 0;
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    if (field_ == "data_offsets" && offsets_ != 2) corrupt("has {} data_offsets instead of 2", offsets_);
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_array_) fail("a number");
    if (field_ == "shape") {
      if (value > static_cast<uint64_t>(INT64_MAX)) corrupt("has a size of {}, which is too large", value);
      info_.shape.push_back(static_cast<int64_t>(value));
    } else {
      if (offsets_ < 2) (offsets_ == 0 ? info_.begin : info_.end) = value;
      ++offsets_;
    }
    return true;
  }
  bool number_integer(number_integer_t /*value*/) override { fail("a negative number"); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { fail("a fraction or too large a number"); }
  bool null() override { fail("null"); }
  bool boolean(bool /*value*/) override { fail("a boolean"); }
  bool binary(binary_t& /*value*/) override { fail("binary data"); }
  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::json::exception& /*error*/) override {
    throw Error(ErrorKind::corrupt, "{}: the safetensors header is not valid JSON in UTF-8 at byte {}; fetch the file again", path_,
                position);
  }

 private:
  [[nodiscard]] bool is_metadata() const { return name_ == "__metadata__"; }
  template <typename... Args>
  [[noreturn]] void corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(ErrorKind::corrupt, "{}: '{}' {}; the safetensors file is malformed", path_, name_,
                fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorKind::corrupt, "{}: the safetensors header has {} where it does not belong, after '{}'; the file is malformed", path_,
                what, name_);
  }
  void finish_tensor() {
    if (!seen_dtype_ || !seen_shape_ || !seen_offsets_) corrupt("lacks dtype, shape or data_offsets");
    const FileType* type = find_type(info_.dtype_name);
    if (type == nullptr) corrupt("has the unknown dtype '{}'", printable(info_.dtype_name));
    info_.dtype = type->dtype;
    uint64_t bits = type->bits;
    for (const int64_t size : info_.shape)
      if (__builtin_mul_overflow(bits, static_cast<uint64_t>(size), &bits))
        corrupt("has the shape {}, which is too large", printable(to_string(info_.shape)));
    if (bits % 8 != 0) corrupt("does not fill whole bytes");
    if (info_.end < info_.begin || info_.end - info_.begin != bits / 8)
      corrupt("has {} {} of {} bytes but data_offsets [{}, {}]", info_.dtype_name, printable(to_string(info_.shape)), bits / 8, info_.begin,
              info_.end);
    header_.tensors.emplace(name_, std::move(info_));
  }

  SafetensorsHeader& header_;
  const std::string& path_;
  int depth_ = 0;
  bool in_array_ = false, seen_metadata_ = false, seen_dtype_ = false, seen_shape_ = false, seen_offsets_ = false;
  int64_t offsets_ = 0;
  std::string name_, field_;
  TensorInfo info_;
};

/// The tensors' bytes must follow each other without hole or overlap and end where the file does.
void check_tiling(const SafetensorsHeader& header, uint64_t data_bytes, const std::string& path) {
  using Entry = std::pair<const std::string, TensorInfo>;
  std::vector<const Entry*> order;
  order.reserve(header.tensors.size());
  for (const Entry& entry : header.tensors) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  uint64_t position = 0;
  for (const Entry* entry : order) {
    if (entry->second.begin != position)
      throw Error(
          ErrorKind::corrupt, "{}: tensor '{}' starts at byte {} of the data where {} was expected ({}); the safetensors file is malformed",
          path, printable(entry->first), entry->second.begin, position, entry->second.begin < position ? "it overlaps another" : "a hole");
    position = entry->second.end;
  }
  if (position != data_bytes)
    throw Error(ErrorKind::corrupt, "{}: {} bytes of tensor data where the header says {}; the file is {}, fetch it again", path,
                data_bytes, position, data_bytes < position ? "cut short" : "too long");
}

}  // namespace

SafetensorsHeader parse_safetensors(std::span<const std::byte> file, const std::string& path) {
  if (file.size() < 8)
    throw Error(ErrorKind::corrupt, "{}: {} bytes are too few for a safetensors file; fetch it again", path, file.size());
  uint64_t length = 0;  // little-endian in the file, as on every machine muster runs on
  std::memcpy(&length, file.data(), 8);
  if (length > kMaxHeader)
    throw Error(ErrorKind::corrupt, "{}: a header of {} bytes is over the limit of {}; this is not a safetensors file", path, length,
                kMaxHeader);
  if (length > file.size() - 8)
    throw Error(ErrorKind::corrupt, "{}: the header of {} bytes does not fit the file of {}; the file is cut short, fetch it again", path,
                length, file.size());
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, length);
  if (text.empty() || text.front() != '{')
    throw Error(ErrorKind::corrupt, "{}: the header does not start with '{{'; this is not a safetensors file", path);
  // The JSON library takes NUL for the end of its input, which would leave what follows unchecked.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    throw Error(ErrorKind::corrupt, "{}: the safetensors header has a NUL at byte {}; fetch the file again", path, nul);
  SafetensorsHeader header;
  header.data_begin = 8 + length;
  HeaderReader reader(header, path);
  nlohmann::json::sax_parse(text, &reader);
  check_tiling(header, file.size() - header.data_begin, path);
  return header;
}

}  // namespace muster::storage
