#include "cli/support.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/cpu.h"
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

ModelSource::ModelSource(const std::string& path) {
  if (storage::is_folder(path)) {
    folder_ = path;
    return;
  }
  if (!storage::is_file(path)) throw Error(ErrorKind::not_found, "model '{}' is neither a folder nor a model.tar.gz", path);
  std::string pattern = (std::filesystem::temp_directory_path() / "muster-model-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw Error(ErrorKind::io, "{}: cannot make a temporary folder ({}): set TMPDIR to one with room", pattern, errno_text(errno));
  temporary_ = pattern;
  folder_ = temporary_ + "/" + std::filesystem::path(path).filename().stem().stem().string();
  try {
    storage::unpack_tar_gz(path, folder_);
    storage::verify_manifest(folder_);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(temporary_, ignored);
    throw;
  }
}

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
  return options;
}

void declare_engine_flags(CLI::App& app, EngineFlags& flags) {
  app.add_option("--threads", flags.threads, "threads that compute; 0: every core this process may use")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_flag("--bf16", flags.bf16, "products in bf16 (default: where the machine has AMX)");
  app.add_flag("--fp32", flags.fp32, "everything in f32");
  app.add_option("--backend", flags.backend, "cpu, or ref (slow: the reference)")
      ->check(CLI::IsMember({"cpu", "ref"}))
      ->capture_default_str();
}

void for_each_line(const std::string& path, const std::function<void(std::string&&)>& take) {
  constexpr size_t kLongest = size_t{64} << 20;
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file)
      throw Error(storage::is_folder(path) || storage::is_file(path) ? ErrorKind::io : ErrorKind::not_found,
                  "{}: cannot open the file of texts", path);
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::string line;
  while (std::getline(in, line)) {
    if (line.size() > kLongest) throw Error(ErrorKind::too_large, "{}: a line of {} bytes; {} is the most", path, line.size(), kLongest);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    take(std::move(line));
    line.clear();
  }
  if (in.bad()) throw Error(ErrorKind::io, "{}: reading failed", path);
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster::cli
