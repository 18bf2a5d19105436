// Reading: whole files, mapped files, and the errors of the operating system in words.
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "storage/descriptor.h"
#include "storage/file.h"

namespace muster::storage {

void throw_read_error(const std::string& path, int errno_value) {
  if (errno_value == ENOENT || errno_value == ENOTDIR) throw Error(ErrorKind::not_found, "{}: no such file; check the path", path);
  const char* advice = errno_value == EACCES ? "; check its permissions" : "";
  throw Error(ErrorKind::io, "cannot read {}: {}{}", path, errno_text(errno_value), advice);
}

void throw_write_error(const std::string& path, std::string_view what, int errno_value) {
  const char* advice = "";
  switch (errno_value) {
    case ENOSPC:
    case EDQUOT: advice = "; free space there or choose another folder"; break;
    case EFBIG: advice = "; raise the file size limit (ulimit -f) or choose another file system"; break;
    case EROFS:
    case EACCES:
    case EPERM: advice = "; choose a folder you may write to"; break;
    case ENOENT:
    case ENOTDIR: advice = "; create its folder first"; break;
    case ENAMETOOLONG: advice = "; choose a shorter name"; break;
    default: break;
  }
  throw Error(ErrorKind::io, "cannot write {} ({}): {}{}", path, what, errno_text(errno_value), advice);
}

Descriptor open_for_reading(const std::string& path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) throw_read_error(path, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) throw_read_error(path, errno);
  if (S_ISDIR(status.st_mode)) throw Error(ErrorKind::io, "cannot read {}: it is a folder; name a file in it", path);
  return fd;
}

std::string read_file(const std::string& path, uint64_t max_bytes) {
  const Descriptor fd = open_for_reading(path);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) throw_read_error(path, errno);
  const auto too_large = [&] {
    return Error(ErrorKind::too_large, "{}: larger than the limit of {} bytes for this kind of file", path, max_bytes);
  };
  const auto expected = static_cast<uint64_t>(S_ISREG(status.st_mode) ? status.st_size : 0);
  if (expected > max_bytes) throw too_large();
  // One byte more than expected, so that the usual file ends with one short read; pipes and files that grow take more rounds.
  std::string content(expected + 1, '\0');
  size_t size = 0;
  for (;;) {
    if (size == content.size()) content.resize(size + std::max<size_t>(size, 1 << 16));
    const ssize_t n = ::read(fd.get(), content.data() + size, content.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_read_error(path, errno);
    if (n == 0) break;
    size += static_cast<size_t>(n);
    if (size > max_bytes) throw too_large();
  }
  content.resize(size);
  return content;
}

MappedFile::MappedFile(const std::string& path) {
  const Descriptor fd = open_for_reading(path);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) throw_read_error(path, errno);
  if (!S_ISREG(status.st_mode)) throw Error(ErrorKind::io, "cannot map {}: it is not a regular file", path);
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;  // an empty mapping is an error to mmap
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) throw_read_error(path, errno);
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace muster::storage
