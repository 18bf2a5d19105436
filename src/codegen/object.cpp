#include "codegen/object.h"

#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Pass.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Scalar.h>
#include <sys/mman.h>
#include <unistd.h>

#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "codegen/lower.h"

LLD_HAS_DRIVER(elf)

namespace muster::codegen {
namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

std::unique_ptr<llvm::TargetMachine> target_machine(Isa isa) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (target == nullptr) throw std::runtime_error(error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // a sum of products is fused only where the nest says so
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      kTriple, isa == Isa::avx2 ? "x86-64-v3" : "x86-64-v4", "", options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
}

using Object = llvm::SmallVector<char, 0>;

Object compile(std::span<const cpu::LoopNest> nests, Isa isa) {
  llvm::LLVMContext context;
  llvm::Module module("program", context);
  const auto machine = target_machine(isa);
  module.setTargetTriple(kTriple);
  module.setDataLayout(machine->createDataLayout());
  for (const cpu::LoopNest& nest : nests) lower(nest, isa == Isa::avx2 ? 16 : 32, module);
  std::string problem;
  llvm::raw_string_ostream words(problem);
  if (llvm::verifyModule(module, &words)) throw std::runtime_error(problem);

  Object object;
  llvm::raw_svector_ostream out(object);
  llvm::legacy::PassManager passes;
  passes.add(llvm::createEarlyCSEPass());
  if (machine->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile))
    throw std::runtime_error("LLVM cannot write objects for this target");
  passes.run(module);
  return object;
}

/// A file without a name, by its path in /proc.
class AnonymousFile {
 public:
  AnonymousFile() : fd_(memfd_create("muster_object", MFD_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error("no anonymous file");
  }
  ~AnonymousFile() { close(fd_); }
  AnonymousFile(const AnonymousFile&) = delete;
  AnonymousFile& operator=(const AnonymousFile&) = delete;

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  void write(const Object& bytes) const {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (n <= 0) throw std::runtime_error("an anonymous file cannot be written");
      done += static_cast<size_t>(n);
    }
  }

 private:
  int fd_;
};

/// Where lld writes: to a regular file it would write beside it first, and there is no beside. What arrives is gathered meanwhile.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    reader_ = std::thread([this] {
      std::byte part[1 << 16];
      for (ssize_t n; (n = ::read(ends_[0], part, sizeof part)) > 0;) bytes_.insert(bytes_.end(), part, part + n);
    });
  }
  ~Pipe() {
    (void)finish();
    close(ends_[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(ends_[1]); }
  /// Everything, once nobody else has the writing end open.
  std::vector<std::byte> finish() {
    if (reader_.joinable()) {
      close(ends_[1]);
      reader_.join();
    }
    return std::move(bytes_);
  }

 private:
  int ends_[2];
  std::thread reader_;
  std::vector<std::byte> bytes_;
};

std::vector<std::byte> link(const std::vector<Object>& objects) {
  std::vector<std::unique_ptr<AnonymousFile>> inputs;
  Pipe output;
  std::vector<std::string> words{"ld.lld", "-shared", "-Bsymbolic",      "--hash-style=gnu", "-z", "noseparate-code",
                                 "-z",     "norelro", "--build-id=none", "--threads=1",      "-o", output.path()};
  for (const Object& object : objects) {
    inputs.push_back(std::make_unique<AnonymousFile>());
    inputs.back()->write(object);
    words.push_back(inputs.back()->path());
  }
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  std::string said;
  llvm::raw_string_ostream stream(said);
  static std::mutex one_at_a_time;  // lld has global state
  const std::lock_guard lock(one_at_a_time);
  const lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) throw std::runtime_error("lld: " + said);
  return output.finish();
}

}  // namespace

std::vector<std::byte> make_object(std::span<const cpu::LoopNest> nests, Isa isa) {
  // Two halves at once, cut by count: what is in which object does not depend on the machine.
  constexpr size_t kWorthAThread = 4;
  const size_t first = nests.size() >= kWorthAThread ? nests.size() / 2 : nests.size();
  std::vector<Object> objects(first < nests.size() ? 2 : 1);
  std::exception_ptr failed;
  std::thread other;
  if (objects.size() > 1)
    other = std::thread([&] {
      try {
        objects[1] = compile(nests.subspan(first), isa);
      } catch (...) {
        failed = std::current_exception();
      }
    });
  std::exception_ptr failed_here;
  try {
    objects[0] = compile(nests.first(first), isa);
  } catch (...) {
    failed_here = std::current_exception();
  }
  if (other.joinable()) other.join();
  if (failed_here) std::rethrow_exception(failed_here);
  if (failed) std::rethrow_exception(failed);
  return link(objects);
}

}  // namespace muster::codegen
