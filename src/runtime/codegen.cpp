#include "runtime/codegen.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "codegen/entry.h"
#include "core/error.h"

namespace muster::runtime {
namespace {

struct Module {
  codegen::Entry entry = nullptr;
  std::string why;  // when entry is null
};

/// Where the module may be: as MUSTER_CODEGEN says, beside the program (a build folder), or in lib/muster of its prefix.
std::vector<std::string> places() {
  if (const char* given = std::getenv("MUSTER_CODEGEN"); given != nullptr && *given != '\0') return {given};
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = program.parent_path();
  std::vector<std::string> found{folder / "libmuster_codegen.so", folder.parent_path() / "lib/muster/libmuster_codegen.so"};
  for (std::filesystem::path up = folder; up.has_relative_path(); up = up.parent_path())  // a test program deep in a build folder
    if (std::filesystem::exists(up / "CMakeCache.txt", error)) found.push_back(up / "libmuster_codegen.so");
  return found;
}

Module open_module() {
  Module module;
  std::string looked;
  for (const std::string& place : places()) {
    looked += (looked.empty() ? "" : ", ") + place;
    std::error_code error;
    if (!std::filesystem::exists(place, error)) continue;
    void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: LLVM has state of its own until the process ends
    if (handle == nullptr) {
      module.why = fmt::format("{} cannot be loaded: {}", place, dlerror());
      return module;
    }
    module.entry = reinterpret_cast<codegen::Entry>(dlsym(handle, codegen::kEntryName));
    if (module.entry == nullptr) module.why = fmt::format("{} is no code generator of muster", place);
    return module;
  }
  module.why = fmt::format("libmuster_codegen.so is not there (looked at {})", looked);
  return module;
}

const Module& module_once() {
  static const Module module = open_module();
  return module;
}

}  // namespace

uint32_t codegen_version() { return codegen::kVersion; }

bool codegen_available(std::string* why) {
  const Module& module = module_once();
  if (why != nullptr) *why = module.why;
  return module.entry != nullptr;
}

std::vector<std::byte> generate(std::span<const cpu::LoopNest> nests, Isa isa) {
  const Module& module = module_once();
  if (module.entry == nullptr)
    throw Error(ErrorKind::unsupported, "[codegen] {}; install it beside the program, or name it by MUSTER_CODEGEN", module.why);
  struct Sink {
    std::vector<std::byte> bytes;
    std::string words;
  } sink;
  codegen::Request request;
  request.nests = nests.data(), request.count = nests.size(), request.isa = isa, request.sink = &sink;
  request.object = [](void* to, const std::byte* bytes, size_t size) { static_cast<Sink*>(to)->bytes.assign(bytes, bytes + size); };
  request.failed = [](void* to, const char* words) { static_cast<Sink*>(to)->words = words; };
  module.entry(&request);
  if (sink.bytes.empty()) throw Error(ErrorKind::internal, "[codegen] {}", sink.words);
  return std::move(sink.bytes);
}

}  // namespace muster::runtime
