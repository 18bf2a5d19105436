#include "runtime/compile_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/log.h"
#include "graph/serialize.h"
#include "storage/file.h"
#include "storage/sha256.h"

namespace muster::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "MUSTERP1";
constexpr std::string_view kSuffix = ".muster";

/// The last bytes of an entry.
struct Trailer {
  uint64_t object = 0, graph = 0;  // sizes
  char hash[64] = {};              // SHA-256 of both, hexadecimal
  char magic[8] = {};
};
static_assert(sizeof(Trailer) == 88);

/// The parts of a whole entry; nothing when it does not hold.
struct Parts {
  std::span<const std::byte> object;
  std::string_view graph;
};
std::optional<Parts> parts_of(std::span<const std::byte> bytes) {
  Trailer t;
  if (bytes.size() < sizeof t) return std::nullopt;
  const size_t content = bytes.size() - sizeof t;
  std::memcpy(&t, bytes.data() + content, sizeof t);
  if (std::string_view(t.magic, sizeof t.magic) != kMagic || t.object > content || t.graph != content - t.object) return std::nullopt;
  if (storage::sha256_hex(bytes.first(content)) != std::string_view(t.hash, sizeof t.hash)) return std::nullopt;
  return Parts{bytes.first(t.object), {reinterpret_cast<const char*>(bytes.data()) + t.object, t.graph}};
}

/// Entries are run: nobody else may put one there.
void check_owner(const std::string& folder) {
  struct stat info{};
  if (stat(folder.c_str(), &info) != 0) return;
  const bool ours = info.st_uid == geteuid() || info.st_uid == 0;
  if (!ours || (info.st_mode & S_IWOTH) != 0)
    throw Error(ErrorKind::invalid_argument,
                "the compile cache {} can be written by others, and its entries are code: use another folder (--compile_cache)", folder);
}

}  // namespace

CompileCache::CompileCache(std::string folder, uint64_t limit) : folder_(std::move(folder)), limit_(limit) {
  std::error_code error;
  fs::create_directories(folder_, error);  // a folder that cannot be made is one that stores nothing
  check_owner(folder_);
}

bool CompileCache::contains(const std::string& key) const {
  try {
    return parts_of(storage::MappedFile(path_of(key)).bytes()).has_value();
  } catch (const Error&) {
    return false;
  }
}

std::optional<CachedProgram> CompileCache::find(const std::string& key) const {
  const std::string path = path_of(key);
  try {
    const storage::MappedFile file(path);
    const std::optional<Parts> parts = parts_of(file.bytes());
    if (!parts) throw Error(ErrorKind::corrupt, "{} is cut off or altered", path);
    CachedProgram program{graph::deserialize(parts->graph), nullptr, parts->object.size()};
    verify(program.graph);
    if (!parts->object.empty()) program.code = cpu::Code::load(path);
    utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // the time of use; a read-only folder keeps the old one
    return program;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::not_found || !storage::is_file(path)) return std::nullopt;
    log_warning("the compile cache's entry {} is not used and made anew: {}", path, e.what());
    std::error_code error;
    fs::remove(path, error);
    return std::nullopt;
  }
}

bool CompileCache::store(const std::string& key, const graph::Graph& graph, std::span<const std::byte> object, std::string& why) const {
  const std::string nodes = serialize(graph);
  std::string bytes(reinterpret_cast<const char*>(object.data()), object.size());
  bytes += nodes;
  Trailer t;
  t.object = object.size(), t.graph = nodes.size();
  const std::string hash = storage::sha256_hex(bytes);
  std::memcpy(t.hash, hash.data(), sizeof t.hash);
  std::memcpy(t.magic, kMagic.data(), sizeof t.magic);
  bytes.append(reinterpret_cast<const char*>(&t), sizeof t);
  try {
    shrink(key);
    storage::write_file_atomic(path_of(key), bytes, "compiled program");
    return true;
  } catch (const Error& e) {
    why = e.what();
    return false;
  }
}

/// Removes what killed writers left, and the least recently used entries until a quarter of the limit is free again.
void CompileCache::shrink(const std::string& newest) const {
  storage::remove_leftovers(folder_);
  struct Entry {
    fs::path path;
    fs::file_time_type used;
    uint64_t bytes = 0;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;  // another process may remove entries meanwhile
    if (it->path().extension() != kSuffix || it->path().stem() == newest) continue;
    Entry e{it->path(), fs::last_write_time(it->path(), gone), fs::file_size(it->path(), gone)};
    if (gone) continue;
    total += e.bytes;
    entries.push_back(std::move(e));
  }
  if (total <= limit_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& e : entries) {
    if (total <= limit_ - limit_ / 4) break;
    std::error_code gone;
    fs::remove(e.path, gone);
    total -= e.bytes;
  }
}

std::string default_cache_folder() {
  const auto value = [](const char* name) -> std::string {
    const char* v = std::getenv(name);
    return v == nullptr ? "" : v;
  };
  if (const std::string given = value("MUSTER_COMPILE_CACHE"); !given.empty()) return given;
  if (const std::string caches = value("XDG_CACHE_HOME"); !caches.empty()) return caches + "/muster";
  if (const std::string home = value("HOME"); !home.empty()) return home + "/.cache/muster";
  return {};
}

}  // namespace muster::runtime
