// Files and folders on local disk: reading, mapping, and writing so that a reader sees the old content or the new, never a part.
// Formats (safetensors, archives, manifests) live in their own files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::storage {

/// 1 GiB: more than any config, vocabulary or label file has.
inline constexpr uint64_t kReadLimit = uint64_t{1} << 30;

/// The whole content of a file (pipes too, up to their end).
/// Throws Error(not_found) when it is not there, Error(io) when it cannot be read, Error(too_large) over max_bytes.
std::string read_file(const std::string& path, uint64_t max_bytes = kReadLimit);

/// A regular file mapped read-only; move-only. The bytes must not be written to, and the file must not be shortened meanwhile
/// (files written by AtomicFile never are: they are replaced).
class MappedFile {
 public:
  /// Throws like read_file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// Writes a file beside its final place and renames it there in commit(), synced; removed when commit() was not reached.
/// An existing regular file is replaced (a link stays a link: its target is replaced); a device or pipe (/dev/stdout) is written directly.
/// Errors are Error(io) naming the path, what was written and what to do. One thread at a time.
class AtomicFile {
 public:
  /// `what` names the content in messages: "weights", "predictions".
  explicit AtomicFile(std::string path, std::string what = "file");
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Flushes, syncs, renames and syncs the folder. Nothing may be written afterwards.
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// AtomicFile in one call.
void write_file_atomic(const std::string& path, std::string_view content, const std::string& what = "file");
void write_file_atomic(const std::string& path, std::span<const std::byte> content, const std::string& what = "file");

/// A folder built under a temporary name beside its final place: write into path(), then commit(). Removed when commit() was not reached.
class AtomicFolder {
 public:
  enum class Existing { refuse, replace };
  /// Throws Error(io) when the target exists (not when replacing) or the temporary folder cannot be made.
  explicit AtomicFolder(std::string target, Existing existing = Existing::refuse);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  /// Where to write until commit(); the target afterwards.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Syncs every file, renames the folder to its target (an existing one is exchanged in one step where the file system can), removes the
  /// old.
  void commit();

 private:
  std::string target_, path_;
  Existing existing_;
  bool committed_ = false;
};

/// Holds a folder for one writer: from construction to the end of the object or the process, however that ends. It leaves no file.
/// A file system without locks lets everyone pass.
class FolderLock {
 public:
  /// Throws Error(io) when another process (or object) holds it or the folder cannot be opened; `who` names what may hold it.
  FolderLock(const std::string& folder, std::string_view who);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

/// Like mkdir -p. Throws Error(io).
void make_folders(const std::string& path);
/// Removes a file or a folder with all it holds; links are removed, not followed; nothing there is fine. Throws Error(io).
void remove_tree(const std::string& path);
bool is_file(const std::string& path);    // a regular file (links followed)
bool is_folder(const std::string& path);  // links followed

struct TreeEntry {
  enum class Kind { file, folder, other };  // other: links, devices, pipes, sockets
  std::string name;                         // relative to the folder, '/' between parts
  Kind kind = Kind::file;
  uint64_t bytes = 0;
};
/// Everything below a folder, sorted by name as bytes; links are not followed. Throws Error(not_found) or Error(io).
std::vector<TreeEntry> list_tree(const std::string& folder);

/// Removes what AtomicFile and AtomicFolder of killed processes left in `folder` (".tmp-<name>-<host>-<pid>-<n>"): of this host when the
/// process is gone, of any host when older than a day. Returns how many.
int remove_leftovers(const std::string& folder);

}  // namespace muster::storage
