#include "cli/support.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/cpu.h"
#include "core/log.h"
#include "runtime/compile_cache.h"
#include "storage/archive.h"
#include "storage/file.h"
#include "storage/package.h"

namespace muster::cli {
namespace {

std::atomic<bool> g_stop{false};  // a process has one set of signals
volatile std::sig_atomic_t g_signal = 0;

void on_signal(int signal) {
  if (g_signal != 0 && signal == SIGINT) _exit(130);
  g_signal = signal;
  g_stop = true;
}

}  // namespace

const std::atomic<bool>& install_stop_flag() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return g_stop;
}

int stop_exit_code() { return g_signal == 0 ? 0 : 128 + static_cast<int>(g_signal); }

void throw_if_stopped() {
  if (g_stop) throw Error(ErrorKind::cancelled, "stopped by a signal");
}

std::string temporary_folder() {
  const char* set = std::getenv("TMPDIR");
  std::string folder = set != nullptr && *set != '\0' ? set : "/tmp";
  if (!storage::is_folder(folder))
    throw Error(ErrorKind::not_found, "{}: no such folder for temporary files; set TMPDIR to one with room", folder);
  return folder;
}

ModelSource::ModelSource(const std::string& path) {
  if (storage::is_folder(path)) {
    folder_ = path;
    return;
  }
  if (!storage::is_file(path)) throw Error(ErrorKind::not_found, "model '{}' is neither a folder nor a model.tar.gz", path);
  std::string pattern = temporary_folder() + "/muster-model-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr)
    throw Error(ErrorKind::io, "{}: cannot make a temporary folder ({}): set TMPDIR to one with room", pattern, errno_text(errno));
  temporary_ = pattern;
  folder_ = temporary_ + "/" + std::filesystem::path(path).filename().stem().stem().string();
  try {
    unpack(path);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(temporary_, ignored);
    throw;
  }
}

void ModelSource::unpack(const std::string& archive) {
  storage::UnpackLimits limits;
  limits.between_blocks = throw_if_stopped;
  storage::unpack_tar_gz(archive, folder_, limits);
  std::vector<std::string> top;
  for (const storage::TreeEntry& entry : storage::list_tree(folder_))
    if (entry.name.find('/') == std::string::npos) top.push_back(entry.name + (entry.kind == storage::TreeEntry::Kind::folder ? "/" : ""));
  if (top.size() == 1 && top.front().ends_with('/'))
    throw Error(ErrorKind::invalid_argument,
                "{}: the files are in {}, not at the root of the archive; pack them with `muster package`, or with tar -C FOLDER .",
                archive, top.front());
  try {
    has_manifest_ = storage::verify_manifest(folder_).has_value();
  } catch (const Error& e) {  // the temporary folder says nothing to the user
    std::string message = e.what();
    for (size_t at; (at = message.find(folder_)) != std::string::npos;) message.replace(at, folder_.size(), archive);
    throw Error(e.kind(), "{}", message);
  }
  throw_if_stopped();
}

bool ModelSource::verified() const { return temporary_.empty() ? storage::verify_manifest(folder_).has_value() : has_manifest_; }

ModelSource::~ModelSource() {
  if (temporary_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(temporary_, ignored);
}

int EngineFlags::thread_count() const { return threads > 0 ? threads : detect_cpu().logical_cores; }

runtime::Options EngineFlags::runtime() const {
  if (bf16 && fp32) throw Error(ErrorKind::usage, "--bf16 and --fp32 exclude each other");
  runtime::Options options;
  options.backend = backend;
  options.precision = bf16 ? runtime::Precision::bf16 : fp32 ? runtime::Precision::f32 : runtime::Precision::automatic;
  compiler.apply(options);
  return options;
}

void CompilerFlags::apply(runtime::Options& options) const {
  if (no_cache && !cache.empty()) throw Error(ErrorKind::usage, "--compile_cache and --no_compile_cache exclude each other");
  options.disabled = {disabled.begin(), disabled.end()};
  runtime::check_pass_names(options.disabled);
  options.cache_folder = no_cache ? "" : !cache.empty() ? cache : runtime::default_cache_folder();
  if (!dump.empty()) storage::make_folders(dump);
  options.dump_dir = dump;
  if (!explain) return;
  struct Count {
    int cached = 0, compiled = 0;
    double milliseconds = 0;
  };
  options.on_compiled = [count = std::make_shared<Count>()](const runtime::CompileReport& r) {
    ++(r.from_cache ? count->cached : count->compiled);
    count->milliseconds += r.milliseconds();
    std::string stages;
    for (const auto& [stage, ms] : r.stages) stages += fmt::format("{}{} {:.1f}", stages.empty() ? "" : ", ", stage, ms);
    log_info("program {}: {} in {:.1f} ms ({}); {} regions, {} KB of code{}", r.program, r.from_cache ? "from the cache" : "compiled",
             r.milliseconds(), stages, r.regions, (r.object_bytes + 1023) / 1024,
             r.not_stored.empty() ? "" : "; not kept in the cache: " + r.not_stored);
    log_info("programs so far: {} from the cache, {} compiled, {:.1f} ms", count->cached, count->compiled, count->milliseconds);
  };
}

void declare_compiler_flags(CLI::App& app, CompilerFlags& flags) {
  std::string passes;
  for (const std::string_view pass : runtime::kPasses) passes += (passes.empty() ? "" : ", ") + std::string(pass);
  const auto group = [](CLI::Option* option) { option->group("Compiler"); };
  group(app.add_option("--compile_cache", flags.cache,
                       "folder of compiled programs (default: MUSTER_COMPILE_CACHE, XDG_CACHE_HOME/muster or ~/.cache/muster)"));
  group(app.add_flag("--no_compile_cache", flags.no_cache, "compile anew and keep nothing"));
  group(app.add_option("--disable_pass", flags.disabled, "leave a pass out, to compare: " + passes)->allow_extra_args(false));
  group(app.add_option("--dump_passes", flags.dump, "folder for the text of each graph after each pass (compiles anew)"));
  group(app.add_flag("--explain", flags.explain, "say of each program whether it came from the cache, and what its compilation took"));
}

void declare_engine_flags(CLI::App& app, EngineFlags& flags) {
  app.add_option("--threads", flags.threads, "threads that compute; 0: every core this process may use")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_flag("--bf16", flags.bf16, "products in bf16 (default: where they were measured to be faster)");
  app.add_flag("--fp32", flags.fp32, "everything in f32");
  app.add_option("--backend", flags.backend, "cpu, or ref (slow: the reference)")
      ->check(CLI::IsMember({"cpu", "ref"}))
      ->capture_default_str();
  declare_compiler_flags(app, flags.compiler);
}

void for_each_line(const std::string& path, const std::function<void(std::string&&)>& take) {
  constexpr size_t kLongest = size_t{64} << 20;
  int fd = STDIN_FILENO;
  while (path != "-" && (fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) < 0) {
    throw_if_stopped();
    if (errno == EINTR) continue;  // a pipe without a writer is waited for
    throw Error(errno == ENOENT ? ErrorKind::not_found : ErrorKind::io, "{}: cannot open the file of texts: {}", path, errno_text(errno));
  }
  const std::unique_ptr<const int, void (*)(const int*)> close_it(&fd, [](const int* open) {
    if (*open != STDIN_FILENO) ::close(*open);
  });
  std::string line;
  const auto hand_over = [&] {
    throw_if_stopped();
    if (!line.empty() && line.back() == '\r') line.pop_back();
    take(std::move(line));
    line.clear();
  };
  std::vector<char> buffer(1 << 16);
  for (;;) {
    throw_if_stopped();
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;  // the stop flag was set, or a terminal was resized
    if (n < 0) throw Error(ErrorKind::io, "{}: cannot read the texts: {}", path == "-" ? "standard input" : path, errno_text(errno));
    if (n == 0) break;
    for (std::string_view rest(buffer.data(), static_cast<size_t>(n)); !rest.empty();) {
      const size_t end = rest.find('\n');
      line += rest.substr(0, end);
      if (line.size() > kLongest)
        throw Error(ErrorKind::too_large, "{}: a line of more than {} bytes, the most there may be; are these lines of text?", path,
                    kLongest);
      if (end == std::string_view::npos) break;
      hand_over();
      rest.remove_prefix(end + 1);
    }
  }
  if (!line.empty()) hand_over();
}

void for_each_text(const std::vector<std::string>& texts, const std::string& file, const std::function<void(std::string&&)>& take) {
  for (const std::string& text : texts) take(std::string(text));
  if (!file.empty())
    for_each_line(file, take);
  else if (texts.empty())
    for_each_line("-", take);
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster::cli
