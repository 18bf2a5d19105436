// Unpacking an archive that nobody vouches for: every name, type and size is checked before anything is written.
#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <unordered_map>

#include "storage/archive.h"
#include "storage/descriptor.h"
#include "storage/file.h"
#include "storage/printable.h"

namespace muster::storage {
namespace {

constexpr uint64_t kRatioFloor = 64 << 20;  // small archives of very regular text may pack well

/// The name without "./" and a closing '/'; empty for the root itself. The names of libarchive end at a NUL, so none can hide behind one.
std::string checked_name(std::string_view name, const std::string& archive) {
  const auto refuse = [&](std::string_view why) {
    return Error(ErrorKind::corrupt, "{}: the entry '{}' {}; refusing the archive", archive, printable(name), why);
  };
  for (const char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      throw Error(ErrorKind::corrupt, "{}: an entry has a control character in its name; refusing the archive", archive);
  if (name.empty()) throw refuse("has no name");
  if (name.front() == '/') throw refuse("has an absolute name");
  std::string result;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") throw refuse("leads out of the folder by '..'");
    if (part.size() > 255) throw refuse("has too long a name");
    result += (result.empty() ? "" : "/") + std::string(part);
  }
  if (result.size() > 2048) throw refuse("has too long a name");
  return result;
}

class Unpacker {
 public:
  Unpacker(std::string path, std::string folder, const UnpackLimits& limits)
      : path_(std::move(path)),
        folder_(std::move(folder)),
        limits_(limits),
        archive_(archive_read_new(), archive_read_free),
        buffer_(1 << 18) {
    MUSTER_ASSERT(archive_ != nullptr);
    fd_ = open_for_reading(path_);
    check(archive_read_support_filter_gzip(archive_.get()));
    check(archive_read_support_format_tar(archive_.get()));
    check(archive_read_open_fd(archive_.get(), fd_.get(), 1 << 16));
  }

  void run() {
    for (;;) {
      struct archive_entry* entry = nullptr;
      const int result = archive_read_next_header(archive_.get(), &entry);
      if (result == ARCHIVE_EOF) break;
      if (archive_filter_code(archive_.get(), 0) != ARCHIVE_FILTER_GZIP)
        throw Error(ErrorKind::corrupt, "{}: not a gzip-compressed tar; pack it with `muster package` or `tar -czf`", path_);
      // A warning is raised where the locale cannot spell a name: the bytes are enough for us.
      if (result != ARCHIVE_WARN) check(result);
      const char* name = archive_entry_pathname(entry);
      if (name == nullptr) name = archive_entry_pathname_utf8(entry);
      if (name == nullptr) throw Error(ErrorKind::corrupt, "{}: an entry has a name that cannot be read; refusing the archive", path_);
      add(entry, checked_name(name, path_));
    }
    if (kinds_.empty()) throw Error(ErrorKind::corrupt, "{}: the archive is empty", path_);
  }

 private:
  enum class Kind { file, folder };

  void add(struct archive_entry* entry, const std::string& name) {
    const auto type = archive_entry_filetype(entry);
    if (archive_entry_hardlink(entry) != nullptr || archive_entry_symlink(entry) != nullptr || (type != AE_IFREG && type != AE_IFDIR))
      throw Error(ErrorKind::corrupt,
                  "{}: the entry '{}' is a link, device or pipe; refusing the archive (pack the files themselves: tar -h)", path_, name);
    if (name.empty()) {
      if (type != AE_IFDIR) throw Error(ErrorKind::corrupt, "{}: a file has no name; refusing the archive", path_);
      return;  // "./", as `tar -czf x .` writes it
    }
    make_parents(name);
    if (type == AE_IFDIR) {
      make_folder(name, true);
      return;
    }
    remember(name, Kind::file);
    write(entry, name);
  }

  void remember(const std::string& name, Kind kind) {
    if (!kinds_.emplace(name, Entry{kind, true}).second)
      throw Error(ErrorKind::corrupt, "{}: the entry '{}' is there twice; refusing the archive", path_, name);
    if (static_cast<int64_t>(kinds_.size()) > limits_.max_files)
      throw Error(ErrorKind::too_large, "{}: more than {} files; refusing the archive", path_, limits_.max_files);
  }

  void make_parents(const std::string& name) {
    for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
      make_folder(name.substr(0, slash), false);
  }

  /// A folder may first be implied by a file in it and be named later, once.
  void make_folder(const std::string& name, bool named) {
    const auto found = kinds_.find(name);
    if (found != kinds_.end()) {
      if (found->second.kind != Kind::folder || (named && found->second.named))
        throw Error(ErrorKind::corrupt, "{}: the entry '{}' is there twice; refusing the archive", path_, name);
      found->second.named |= named;
      return;
    }
    remember(name, Kind::folder);
    kinds_.at(name).named = named;
    const std::string path = folder_ + "/" + name;
    if (::mkdir(path.c_str(), 0777) != 0) throw_write_error(path, "folder of " + path_, errno);
  }

  void write(struct archive_entry* entry, const std::string& name) {
    const la_int64_t declared = archive_entry_size(entry);
    if (archive_entry_size_is_set(entry) == 0 || declared < 0)
      throw Error(ErrorKind::corrupt, "{}: the entry '{}' has no size; refusing the archive", path_, name);
    if (static_cast<uint64_t>(declared) > limits_.max_bytes - bytes_)
      throw Error(ErrorKind::too_large, "{}: more than {} bytes unpacked (at '{}'); refusing the archive", path_, limits_.max_bytes, name);
    const std::string path = folder_ + "/" + name, what = "unpacked from " + path_;
    const bool executable = (archive_entry_perm(entry) & 0100) != 0;
    const Descriptor out(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, executable ? 0777 : 0666));
    if (!out.valid()) throw_write_error(path, what, errno);
    uint64_t written = 0;
    for (;;) {
      const la_ssize_t n = archive_read_data(archive_.get(), buffer_.data(), buffer_.size());
      if (n < 0) check(static_cast<int>(n));
      if (n == 0) break;
      if (limits_.between_blocks) limits_.between_blocks();
      written += static_cast<uint64_t>(n);
      bytes_ += static_cast<uint64_t>(n);
      if (written > static_cast<uint64_t>(declared))
        throw Error(ErrorKind::corrupt, "{}: the entry '{}' is longer than it says; refusing the archive", path_, name);
      const auto packed = static_cast<double>(std::max<la_int64_t>(1, archive_filter_bytes(archive_.get(), -1)));
      if (bytes_ > kRatioFloor && static_cast<double>(bytes_) > limits_.max_ratio * packed)
        throw Error(ErrorKind::too_large, "{}: unpacks to more than {} times its size; refusing the archive", path_, limits_.max_ratio);
      for (la_ssize_t done = 0; done < n;) {
        const ssize_t step = ::write(out.get(), buffer_.data() + done, static_cast<size_t>(n - done));
        if (step < 0 && errno == EINTR) continue;
        if (step < 0) throw_write_error(path, what, errno);
        done += step;
      }
    }
    if (written != static_cast<uint64_t>(declared))
      throw Error(ErrorKind::corrupt, "{}: the entry '{}' is cut short; fetch the archive again", path_, name);
  }

  void check(int result) {
    if (result == ARCHIVE_OK) return;
    const char* reason = archive_error_string(archive_.get());
    throw Error(ErrorKind::corrupt, "{}: not a whole gzip-compressed tar ({}); fetch it again", path_,
                reason != nullptr ? reason : "unreadable");
  }

  struct Entry {
    Kind kind;
    bool named;
  };
  std::string path_, folder_;
  UnpackLimits limits_;
  Descriptor fd_;
  std::unique_ptr<struct archive, decltype(&archive_read_free)> archive_;
  std::vector<char> buffer_;
  std::unordered_map<std::string, Entry> kinds_;
  uint64_t bytes_ = 0;
};

}  // namespace

void unpack_tar_gz(const std::string& archive, const std::string& target_folder, const UnpackLimits& limits) {
  AtomicFolder folder(target_folder);
  Unpacker(archive, folder.path(), limits).run();
  folder.commit();
}

}  // namespace muster::storage
