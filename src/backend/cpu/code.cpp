#include "backend/cpu/code.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace muster::cpu {
namespace {

void* open_object(const std::string& path, const std::string& shown) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw Error(ErrorKind::corrupt, "[code] {} cannot be loaded: {}", shown, dlerror());
  return handle;
}

}  // namespace

std::shared_ptr<const Code> Code::load(const std::string& path) {
  return std::shared_ptr<const Code>(new Code(open_object(path, path), -1));
}

std::shared_ptr<const Code> Code::load(std::span<const std::byte> object) {
  // The file stays open as long as the code is loaded: the loader knows objects by path, and this one has its number in it.
  const int fd = memfd_create("muster_program", MFD_CLOEXEC);
  if (fd < 0) throw Error(ErrorKind::io, "[code] no anonymous file for the program: {}", std::strerror(errno));
  std::shared_ptr<Code> code(new Code(nullptr, fd));
  for (size_t done = 0; done < object.size();) {
    const ssize_t n = write(fd, object.data() + done, object.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw Error(ErrorKind::io, "[code] the program does not fit in memory: {}", std::strerror(errno));
    done += static_cast<size_t>(n);
  }
  code->handle_ = open_object(fmt::format("/proc/self/fd/{}", fd), "a program in memory");
  return code;
}

Code::~Code() {
  if (handle_ != nullptr) dlclose(handle_);
  if (fd_ >= 0) close(fd_);
}

void* Code::find(const std::string& name) const {
  void* function = dlsym(handle_, name.c_str());
  if (function == nullptr) throw Error(ErrorKind::corrupt, "[code] the program has no function '{}'", name);
  return function;
}

}  // namespace muster::cpu
