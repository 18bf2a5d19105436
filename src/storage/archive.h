// model.tar.gz: packing a folder reproducibly and unpacking a stranger's archive safely. What a package must hold is package.h.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace muster::storage {

struct PackOptions {
  int gzip_level = 6;                         // 1 fast .. 9 small
  std::function<void()> between_blocks = {};  // called every few hundred KiB; what it throws ends the work, and nothing is left behind
};

/// Writes the content of `folder` at the root of a gzip-compressed tar, byte for byte the same for the same names and contents: names
/// sorted, times and owners 0, modes 0644 (0755 for folders and files their owner may execute). The output appears whole or not at all.
/// Throws Error(invalid_argument) on links, devices, and on an output inside the folder; Error(io).
void pack_tar_gz(const std::string& folder, const std::string& output_path, const PackOptions& options = {});

struct UnpackLimits {
  uint64_t max_bytes = uint64_t{20} << 30;    // all files together, unpacked
  int64_t max_files = 10'000;                 // files and folders
  double max_ratio = 200;                     // unpacked bytes per packed byte, counted from 64 MiB unpacked on
  std::function<void()> between_blocks = {};  // as in PackOptions
};

/// Unpacks into a new folder, which appears whole or not at all. Only plain files and folders with relative names below the target:
/// absolute names, "..", control characters, links, devices, pipes and names given twice are Error(corrupt), as is a truncated or
/// damaged archive; over a limit is Error(too_large). The target must not exist: Error(io).
void unpack_tar_gz(const std::string& archive, const std::string& target_folder, const UnpackLimits& limits = {});

}  // namespace muster::storage
