// Folders: made, listed, removed, and written so that they appear whole or not at all.
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "core/log.h"
#include "storage/descriptor.h"
#include "storage/file.h"

namespace muster::storage {
namespace fs = std::filesystem;

void make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && !is_folder(path)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) throw_write_error(path, "folder", error.value());
}

void remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw Error(ErrorKind::io, "cannot remove {}: {}", path, error.message());
}

bool is_file(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_folder(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::vector<TreeEntry> list_tree(const std::string& folder) {
  if (!is_folder(folder)) throw Error(ErrorKind::not_found, "{}: no such folder; check the path", folder);
  std::vector<TreeEntry> entries;
  try {
    const fs::path root(folder);
    for (const fs::directory_entry& item : fs::recursive_directory_iterator(root)) {
      TreeEntry entry{item.path().lexically_relative(root).generic_string(), TreeEntry::Kind::other, 0};
      const fs::file_status status = item.symlink_status();
      if (fs::is_directory(status)) entry.kind = TreeEntry::Kind::folder;
      if (fs::is_regular_file(status)) {
        entry.kind = TreeEntry::Kind::file;
        entry.bytes = item.file_size();
      }
      entries.push_back(std::move(entry));
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorKind::io, "cannot list {}: {}", folder, error.code().message());
  }
  std::sort(entries.begin(), entries.end(), [](const TreeEntry& a, const TreeEntry& b) { return a.name < b.name; });
  return entries;
}

AtomicFolder::AtomicFolder(std::string target, Existing existing) : target_(std::move(target)), existing_(existing) {
  while (target_.size() > 1 && target_.back() == '/') target_.pop_back();
  if (target_.empty()) throw Error(ErrorKind::io, "cannot write a folder without a name; give one");
  struct stat status{};
  if (existing == Existing::refuse && ::lstat(target_.c_str(), &status) == 0)
    throw Error(ErrorKind::io, "{} already exists; remove it or choose another name", target_);
  path_ = temporary_beside(target_);
  if (::mkdir(path_.c_str(), 0777) != 0) throw_write_error(target_, "folder", errno);
}

AtomicFolder::~AtomicFolder() {
  if (committed_) return;
  std::error_code ignored;  // the error that ends the write is the one to report; what stays is found by remove_leftovers
  fs::remove_all(path_, ignored);
}

namespace {
/// 0 or an errno. File systems without the flags get the nearest plain calls.
int rename_into_place(const std::string& from, const std::string& to, bool replace) {
  struct stat status{};
  const bool exists = ::lstat(to.c_str(), &status) == 0;
  if (exists && !replace) return EEXIST;
  if (!exists) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  }
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return 0;  // `from` is the old one now
  if (errno != EINVAL && errno != ENOSYS) return errno;
  const std::string old = temporary_beside(to);
  if (::rename(to.c_str(), old.c_str()) != 0) return errno;
  if (::rename(from.c_str(), to.c_str()) != 0) {
    const int error = errno;
    if (::rename(old.c_str(), to.c_str()) != 0) log_warning("{}: the old content is kept at {}", to, old);
    return error;
  }
  return ::rename(old.c_str(), from.c_str()) == 0 ? 0 : errno;
}
}  // namespace

void AtomicFolder::commit() {
  MUSTER_ASSERT(!committed_);
  for (const TreeEntry& entry : list_tree(path_))
    if (entry.kind != TreeEntry::Kind::other) sync_path(path_ + "/" + entry.name, "folder");
  sync_path(path_, "folder");
  if (const int error = rename_into_place(path_, target_, existing_ == Existing::replace)) {
    if (error == EEXIST) throw Error(ErrorKind::io, "{} already exists; remove it or choose another name", target_);
    throw_write_error(target_, "folder", error);
  }
  committed_ = true;
  const std::string old = std::exchange(path_, target_);
  sync_path(parent_of(target_), "folder");
  remove_tree(old);
}

FolderLock::FolderLock(const std::string& folder, std::string_view who) : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_ < 0) throw_read_error(folder, errno);
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(fd_);
  throw Error(ErrorKind::io, "{} is in use by another {}; wait for it or choose another folder", folder, who);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

namespace {
struct Leftover {
  std::string_view host;
  pid_t pid = 0;
};

/// Reads ".tmp-<name>-<host>-<pid>-<n>" from the right; the host is compared by the caller, as a host name may hold '-'.
bool parse_leftover(std::string_view name, Leftover& result) {
  if (!name.starts_with(".tmp-")) return false;
  const auto take_number = [&name](int64_t& value) {
    const size_t dash = name.find_last_of('-');
    if (dash == std::string_view::npos) return false;
    const std::string_view digits = name.substr(dash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    name = name.substr(0, dash);
    return error == std::errc() && end == digits.data() + digits.size() && !digits.empty() && value >= 0;
  };
  int64_t number = 0, pid = 0;
  if (!take_number(number) || !take_number(pid) || pid <= 0 || pid > INT32_MAX) return false;
  result = {name, static_cast<pid_t>(pid)};
  return true;
}
}  // namespace

int remove_leftovers(const std::string& folder) {
  constexpr time_t kDay = 24 * 60 * 60;
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') host[0] = '?';
  const std::string here = "-" + std::string(host).substr(0, 64);
  int removed = 0;
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end; item.increment(error)) {
    const std::string name = item->path().filename().string();
    Leftover leftover;
    if (!parse_leftover(name, leftover)) continue;
    struct stat status{};
    if (::lstat(item->path().c_str(), &status) != 0) continue;
    const bool gone = leftover.host.ends_with(here) && ::kill(leftover.pid, 0) != 0 && errno == ESRCH;
    if (!gone && ::time(nullptr) - status.st_mtime < kDay) continue;
    remove_tree(item->path().string());
    ++removed;
  }
  return removed;
}

}  // namespace muster::storage
