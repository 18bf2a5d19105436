// The machine code of a program's fused regions: one shared object, loaded from a file of the compile cache or from memory.
// How it is made: codegen/ (behind runtime/codegen.h). Nothing here needs LLVM.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace muster::cpu {

class Code {
 public:
  /// Loads a shared object (dlopen: gdb and perf see its names, processes share its pages). Throws Error(corrupt) naming the file.
  static std::shared_ptr<const Code> load(const std::string& path);
  /// The same from memory, through an anonymous file: for caches that cannot be written.
  static std::shared_ptr<const Code> load(std::span<const std::byte> object);
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  /// The function of that name (LoopNest::name). Throws Error(corrupt) when the object has none.
  [[nodiscard]] void* find(const std::string& name) const;

 private:
  Code(void* handle, int fd) : handle_(handle), fd_(fd) {}
  void* handle_;
  int fd_;  // of the anonymous file, or -1
};

}  // namespace muster::cpu
