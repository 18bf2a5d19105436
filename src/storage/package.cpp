// manifest.json: written from the files, and the files compared with it.
#include "storage/package.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "storage/file.h"
#include "storage/printable.h"
#include "storage/sha256.h"

namespace muster::storage {
namespace {

using Json = nlohmann::json;
constexpr int kFormatVersion = 1;
constexpr uint64_t kMaxManifest = 64 << 20;

/// The plain files below a folder without the manifest itself.
std::vector<TreeEntry> package_files(const std::string& folder) {
  std::vector<TreeEntry> result;
  for (TreeEntry& entry : list_tree(folder)) {
    if (entry.kind == TreeEntry::Kind::other)
      throw Error(ErrorKind::invalid_argument, "{}/{}: a package holds plain files only; replace the link or device by a file", folder,
                  entry.name);
    if (entry.kind == TreeEntry::Kind::file && entry.name != kManifestName) result.push_back(std::move(entry));
  }
  return result;
}

[[noreturn]] void corrupt(const std::string& folder, const std::string& name, std::string_view why) {
  throw Error(ErrorKind::corrupt, "{}: {} {}; the package is not what {} describes, fetch or pack it again", folder, name, why,
              kManifestName);
}

}  // namespace

void write_manifest(const std::string& folder, Manifest info) {
  info.format_version = kFormatVersion;
  info.files.clear();
  for (const TreeEntry& entry : package_files(folder)) info.files[entry.name] = {sha256_file(folder + "/" + entry.name), entry.bytes};
  Json files = Json::object();
  for (const auto& [name, file] : info.files) files[name] = {{"bytes", file.bytes}, {"sha256", file.sha256}};
  const Json json = {{"format_version", info.format_version}, {"muster_version", info.muster_version},
                     {"model_type", info.model_type},         {"labels", info.labels},
                     {"created_by", info.created_by},         {"files", files}};
  const std::string path = folder + "/" + kManifestName;
  try {
    write_file_atomic(path, json.dump(2) + "\n", "manifest");
  } catch (const Json::exception&) {
    throw Error(ErrorKind::invalid_argument, "cannot write {}: a file name or label is not valid UTF-8; rename it", path);
  }
}

std::optional<Manifest> read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  if (!is_folder(folder)) throw Error(ErrorKind::not_found, "{}: no such folder; check the path", folder);
  if (!is_file(path)) return std::nullopt;
  const Json json = Json::parse(read_file(path, kMaxManifest), nullptr, false);
  try {
    if (!json.is_object()) throw Error(ErrorKind::corrupt, "{}: not a JSON object; fetch or pack the model again", path);
    Manifest result;
    json.at("format_version").get_to(result.format_version);
    if (result.format_version > kFormatVersion)
      throw Error(ErrorKind::unsupported, "{}: format version {} is newer than this muster knows ({}); use a newer muster", path,
                  result.format_version, kFormatVersion);
    json.at("muster_version").get_to(result.muster_version);
    json.at("model_type").get_to(result.model_type);
    json.at("labels").get_to(result.labels);
    json.at("created_by").get_to(result.created_by);
    for (const auto& [name, file] : json.at("files").items())
      result.files[name] = {file.at("sha256").get<std::string>(), file.at("bytes").get<uint64_t>()};
    return result;
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::corrupt, "{}: malformed manifest ({}); fetch or pack the model again", path, printable(error.what(), 200));
  }
}

std::optional<Manifest> verify_manifest(const std::string& folder) {
  std::optional<Manifest> manifest = read_manifest(folder);
  if (!manifest) return std::nullopt;
  std::map<std::string, uint64_t> found;
  for (const TreeEntry& entry : package_files(folder)) found[entry.name] = entry.bytes;
  // Both maps are sorted by name: walk the union, so that the first file that is wrong is the one named.
  auto listed = manifest->files.begin();
  for (auto there = found.begin(); there != found.end() || listed != manifest->files.end();) {
    if (listed == manifest->files.end() || (there != found.end() && there->first < listed->first))
      corrupt(folder, there->first, "is not listed in its manifest");
    if (there == found.end() || listed->first < there->first) corrupt(folder, listed->first, "is missing");
    if (there->second != listed->second.bytes)
      corrupt(folder, there->first, fmt::format("has {} bytes where the manifest says {}", there->second, listed->second.bytes));
    if (sha256_file(folder + "/" + there->first) != listed->second.sha256)
      corrupt(folder, there->first, "has another SHA-256 than the manifest says");
    ++there;
    ++listed;
  }
  return manifest;
}

}  // namespace muster::storage
