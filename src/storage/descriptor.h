// What the bodies of this room share: a file descriptor that closes itself, and the errors of the operating system in words.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace muster::storage {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  /// close() reports what a delayed write could not do (NFS): 0 or an errno.
  int close() { return fd_ >= 0 && ::close(std::exchange(fd_, -1)) != 0 ? errno : 0; }

 private:
  void reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  int fd_;
};

/// "cannot write x/model.safetensors (weights): No space left on device; free space there or choose another folder"
[[noreturn]] void throw_write_error(const std::string& path, std::string_view what, int errno_value);
/// Error(not_found) for ENOENT, else Error(io).
[[noreturn]] void throw_read_error(const std::string& path, int errno_value);

/// Opens for reading; refuses folders. Throws throw_read_error.
Descriptor open_for_reading(const std::string& path);
/// Makes what was written to this file or folder last through a power cut. File systems that cannot sync a folder are let pass.
void sync_path(const std::string& path, std::string_view what);
/// "x/.tmp-<name>-<host>-<pid>-<n>", fresh for each call in this process.
std::string temporary_beside(const std::string& path);
/// "x" of "x/name"; "." when there is none.
std::string parent_of(const std::string& path);

}  // namespace muster::storage
