// Writing one file so that it appears whole or not at all.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "storage/descriptor.h"
#include "storage/file.h"

namespace muster::storage {

std::string parent_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string temporary_beside(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') host[0] = '?';
  // Long names are cut: the temporary name must fit NAME_MAX where the final one does.
  const std::string name = path.substr(path.find_last_of('/') + 1).substr(0, 100);
  return fmt::format("{}/.tmp-{}-{}-{}-{}", parent_of(path), name, std::string_view(host).substr(0, 64), ::getpid(), counter++);
}

void sync_path(const std::string& path, std::string_view what) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) throw_write_error(path, what, errno);
  if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP) throw_write_error(path, what, errno);
}

struct AtomicFile::State {
  static constexpr size_t kBuffer = 1 << 20;
  std::string path, what, temporary;  // temporary is empty when a device or pipe is written directly
  Descriptor fd;
  std::string buffer;

  void write_out(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw_write_error(path, what, errno);
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
  }
  void flush() {
    write_out(std::as_bytes(std::span(buffer)));
    buffer.clear();
  }
};

AtomicFile::AtomicFile(std::string path, std::string what) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.path = std::move(path);
  s.what = std::move(what);
  struct stat status{};
  const bool exists = ::stat(s.path.c_str(), &status) == 0;
  if (s.path.empty() || s.path.back() == '/' || (exists && S_ISDIR(status.st_mode)))
    throw Error(ErrorKind::io, "cannot write {} ({}): it names a folder; give a file name", s.path.empty() ? "''" : s.path, s.what);
  if (exists && !S_ISREG(status.st_mode)) {
    s.fd = Descriptor(::open(s.path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!s.fd.valid()) throw_write_error(s.path, s.what, errno);
    return;
  }
  if (exists) {  // a link stays a link
    char* resolved = ::realpath(s.path.c_str(), nullptr);
    if (resolved != nullptr) s.path = resolved;
    std::free(resolved);
  }
  const std::string temporary = temporary_beside(s.path);
  s.fd = Descriptor(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!s.fd.valid()) throw_write_error(s.path, s.what, errno);
  s.temporary = temporary;
}

AtomicFile::~AtomicFile() {
  if (!state_->temporary.empty()) ::unlink(state_->temporary.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  State& s = *state_;
  MUSTER_ASSERT(s.fd.valid());
  if (s.buffer.size() + bytes.size() < State::kBuffer) {
    s.buffer.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return;
  }
  s.flush();
  s.write_out(bytes);
}

void AtomicFile::commit() {
  State& s = *state_;
  MUSTER_ASSERT(s.fd.valid());
  s.flush();
  if (!s.temporary.empty() && ::fsync(s.fd.get()) != 0) throw_write_error(s.path, s.what, errno);
  if (const int error = s.fd.close()) throw_write_error(s.path, s.what, error);
  if (s.temporary.empty()) return;
  if (::rename(s.temporary.c_str(), s.path.c_str()) != 0) throw_write_error(s.path, s.what, errno);
  s.temporary.clear();
  sync_path(parent_of(s.path), s.what);
}

void write_file_atomic(const std::string& path, std::span<const std::byte> content, const std::string& what) {
  AtomicFile file(path, what);
  file.write(content);
  file.commit();
}

void write_file_atomic(const std::string& path, std::string_view content, const std::string& what) {
  write_file_atomic(path, std::as_bytes(std::span(content.data(), content.size())), what);
}

}  // namespace muster::storage
