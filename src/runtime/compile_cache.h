// Compiled programs on disk: what the passes made of a graph together with its machine code, under a key of everything they depend on.
// An entry is one file: the shared object (empty for a program without regions), the graph, and a trailer with sizes and a hash. It is
// written beside its place and renamed; it is checked when it is read, and one that does not hold is removed and made anew.
// Any number of processes may share a folder.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "backend/cpu/code.h"
#include "graph/graph.h"

namespace muster::runtime {

struct CachedProgram {
  graph::Graph graph;
  std::shared_ptr<const cpu::Code> code;  // null: the program has no regions
  size_t object_bytes = 0;
};

class CompileCache {
 public:
  static constexpr uint64_t kDefaultLimit = uint64_t{1} << 30;

  /// `folder` is made when it is missing. Entries beyond `limit` bytes in all are removed, the least recently used first.
  /// Throws Error(invalid_argument) when others may write to the folder: its entries are code that this process would run.
  explicit CompileCache(std::string folder, uint64_t limit = kDefaultLimit);

  /// The entry of a key (hexadecimal digits), or nothing. Marks it as used.
  [[nodiscard]] std::optional<CachedProgram> find(const std::string& key) const;
  /// Whether a whole entry of the key is there, for this machine or another.
  [[nodiscard]] bool contains(const std::string& key) const;

  /// Stores an entry. A folder that cannot be written (read-only, full) is no error: false, and `why` says so.
  bool store(const std::string& key, const graph::Graph& graph, std::span<const std::byte> object, std::string& why) const;

  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  [[nodiscard]] std::string path_of(const std::string& key) const { return folder_ + "/" + key + ".muster"; }
  void shrink(const std::string& newest) const;

  std::string folder_;
  uint64_t limit_;
};

/// MUSTER_COMPILE_CACHE, else XDG_CACHE_HOME/muster, else HOME/.cache/muster; empty when none of them is set: no cache.
std::string default_cache_folder();

}  // namespace muster::runtime
