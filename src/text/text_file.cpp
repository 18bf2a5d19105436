// See text_file.h.
#include "text/text_file.h"

#include <cerrno>
#include <fstream>
#include <system_error>

#include "core/error.h"

namespace muster::text {

std::string read_text_file(const std::filesystem::path& file, size_t limit) {
  std::error_code failure;
  const auto size = std::filesystem::file_size(file, failure);
  if (failure) {
    const bool missing = failure == std::errc::no_such_file_or_directory;
    throw Error(missing ? ErrorKind::not_found : ErrorKind::io, "[tokenizer] {}: {}", file.string(), failure.message());
  }
  if (size > limit) {
    throw Error(ErrorKind::too_large, "[tokenizer] {}: {} bytes; at most {} are read", file.string(), size, limit);
  }
  std::string bytes(size, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!stream || static_cast<size_t>(stream.gcount()) != size) {
    throw Error(ErrorKind::io, "[tokenizer] {}: cannot read {} bytes: {}", file.string(), size, errno_text(errno));
  }
  return bytes;
}

}  // namespace muster::text
