// Reading a small text file whole.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>

namespace muster::text {

/// Bytes of `file` as they are. Throws Error: not_found, io, too_large (above `limit` bytes).
std::string read_text_file(const std::filesystem::path& file, size_t limit = size_t{256} << 20);

}  // namespace muster::text
