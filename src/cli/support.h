// What several verbs need: signals, where a model is, how texts come in, which threads and precision.
#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compile.h"

namespace CLI {
class App;
}

namespace muster::cli {

/// True from the first SIGINT or SIGTERM on; a second SIGINT ends the process at once. Call before threads start.
const std::atomic<bool>& install_stop_flag();
/// 128 + the signal that came, or 0.
int stop_exit_code();
/// Throws Error(cancelled) once the stop flag is set; the program then ends with stop_exit_code() and without a message.
void throw_if_stopped();

/// TMPDIR or /tmp. Throws Error(not_found) when that is no folder.
std::string temporary_folder();

/// A model folder, given as a folder or as model.tar.gz: an archive is unpacked into a temporary folder that goes with the object, and
/// its manifest is verified. After install_stop_flag() a signal ends the unpacking. Throws Error(not_found|corrupt|...).
class ModelSource {
 public:
  explicit ModelSource(const std::string& path);
  ~ModelSource();
  ModelSource(const ModelSource&) = delete;
  ModelSource& operator=(const ModelSource&) = delete;
  [[nodiscard]] const std::string& folder() const { return folder_; }
  /// Whether the files agree with a manifest (Error(corrupt) when they do not); false without a manifest.
  [[nodiscard]] bool verified() const;

 private:
  void unpack(const std::string& archive);
  std::string folder_, temporary_;
  bool has_manifest_ = false;  // of an archive
};

/// --compile_cache, --no_compile_cache, --disable_pass, --dump_passes, --explain.
struct CompilerFlags {
  std::string cache;  // empty: default_cache_folder()
  bool no_cache = false, explain = false;
  std::vector<std::string> disabled;
  std::string dump;
  /// Fills what the flags say into `options`; with --explain each program says how it came to be. Throws Error(usage).
  void apply(runtime::Options& options) const;
};
void declare_compiler_flags(CLI::App& app, CompilerFlags& flags);

/// --threads, --bf16, --fp32, --backend and the compiler's flags, as every verb that runs a model has them.
struct EngineFlags {
  int threads = 0;
  bool bf16 = false, fp32 = false;
  std::string backend = "cpu";
  CompilerFlags compiler;
  [[nodiscard]] int thread_count() const;
  [[nodiscard]] runtime::Options runtime() const;
};
void declare_engine_flags(CLI::App& app, EngineFlags& flags);

/// Lines of a file ("-": standard input) without their LF or CR LF, handed over one by one.
/// Throws Error(not_found|io|too_large: a line over 64 MiB), and like throw_if_stopped().
void for_each_line(const std::string& path, const std::function<void(std::string&&)>& take);

/// What verbs take texts from: those of the command line, then the lines of `file`; the lines of standard input when neither is given.
void for_each_text(const std::vector<std::string>& texts, const std::string& file, const std::function<void(std::string&&)>& take);

/// JSON string with its quotes; invalid UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

}  // namespace muster::cli
