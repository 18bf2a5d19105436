// The manifest of a packaged model: manifest.json, with the hash of every file beside it. Packing itself is archive.h.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::storage {

inline constexpr const char* kManifestName = "manifest.json";

struct Manifest {
  struct File {
    std::string sha256;
    uint64_t bytes = 0;
  };
  int format_version = 1;
  std::string muster_version;                     // that wrote it
  std::string model_type;                         // "bert", "roberta", ...
  std::vector<std::string> labels;                // in id order
  std::map<std::string, std::string> created_by;  // versions and settings worth keeping: "compiler", "isa", ...
  std::map<std::string, File> files;              // by name relative to the folder, '/' between parts; manifest.json itself is not in it
};

/// Hashes every file below `folder` (code/ included) into info.files and writes manifest.json, replacing an old one.
/// Throws Error(invalid_argument) on links and devices, Error(io).
void write_manifest(const std::string& folder, Manifest info);

/// The manifest as written, nothing checked against the files; none when the folder has no manifest.json.
/// Throws Error(corrupt) when it is malformed, Error(unsupported) when a newer muster wrote it.
std::optional<Manifest> read_manifest(const std::string& folder);

/// Compares every file with the manifest; none when there is no manifest (a folder packed by hand: the caller decides).
/// Throws Error(corrupt) naming the first file, by name, that differs, is missing, or is there without being listed.
std::optional<Manifest> verify_manifest(const std::string& folder);

}  // namespace muster::storage
