#include "cli/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "models/weights.h"
#include "storage/safetensors.h"

namespace muster::cli {

namespace fs = std::filesystem;

Folder::Folder() {
  std::string pattern = (fs::temp_directory_path() / "muster-cli-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}
Folder::~Folder() { fs::remove_all(path_); }

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

void write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<std::string> names(const std::string& folder) {
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(folder)) all.push_back(entry.path().filename().string());
  std::sort(all.begin(), all.end());
  return all;
}

Process::Process(Start start) {
  std::string pattern = (fs::temp_directory_path() / "muster-run-XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
  write(folder_ + "/in", start.input);
  std::vector<char*> argv;
  start.arguments.insert(start.arguments.begin(), MUSTER_PROGRAM);
  for (std::string& a : start.arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  for (const auto& [fd, name, flags] : {std::tuple{0, "/in", O_RDONLY}, {1, "/out", O_WRONLY | O_CREAT}, {2, "/err", O_WRONLY | O_CREAT}}) {
    const int file = open((folder_ + name).c_str(), flags, 0600);
    dup2(file, fd);
    close(file);
  }
  for (const auto& [name, value] : start.environment) setenv(name.c_str(), value.c_str(), 1);
  if (!start.folder.empty() && chdir(start.folder.c_str()) != 0) _exit(126);
  if (start.file_size_limit > 0) {
    const rlimit limit{static_cast<rlim_t>(start.file_size_limit), static_cast<rlim_t>(start.file_size_limit)};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, SIG_IGN);  // the write fails instead
  }
  execv(MUSTER_PROGRAM, argv.data());
  _exit(127);
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  fs::remove_all(folder_);
}

void Process::signal(int number) const { kill(pid_, number); }

std::string Process::error_so_far() const { return read(folder_ + "/err"); }

bool Process::wait_for(const std::string& text) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < end) {
    if (error_so_far().find(text) != std::string::npos) return true;
    siginfo_t info = {};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0)
      return error_so_far().find(text) != std::string::npos;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

Finished Process::finish() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(folder_ + "/out"), read(folder_ + "/err")};
}

Finished run(Start start) { return Process(std::move(start)).finish(); }

namespace {
constexpr const char* kGood[] = {"good", "great", "lovely", "happy"};
constexpr const char* kBad[] = {"bad", "awful", "sad", "angry"};
constexpr const char* kFill[] = {"the", "day", "was", "really", "a", "film", "so", "very", "today", "this"};
}  // namespace

void make_data(const std::string& folder, int rows) {
  write(folder + "/mapping.txt", "0\tbad\n1\tgood\n");
  uint32_t state = 12345;
  const auto next = [&state](uint32_t n) { return (state = state * 1664525U + 1013904223U) / 65536U % n; };
  for (const char* split : {"train", "val", "test"}) {
    std::string texts, labels;
    for (int i = 0; i < rows; ++i) {
      const bool good = next(2) == 1;
      std::string text;
      for (uint32_t k = 3 + next(6); k > 0; --k) text += std::string(kFill[next(10)]) + " ";
      texts += text + (good ? kGood : kBad)[next(4)] + "\n";
      labels += good ? "1\n" : "0\n";
    }
    write(folder + "/" + split + "_text.txt", texts);
    write(folder + "/" + split + "_labels.txt", labels);
  }
}

void make_model(const std::string& folder) {
  std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (const char* word : kGood) vocab += std::string(word) + "\n";
  for (const char* word : kBad) vocab += std::string(word) + "\n";
  for (const char* word : kFill) vocab += std::string(word) + "\n";
  write(folder + "/vocab.txt", vocab);
  write(folder + "/tokenizer_config.json", R"({"do_lower_case": true, "tokenizer_class": "BertTokenizer"})");
  models::ModelConfig config = models::named_config("tiny");
  config.vocab_size = 23, config.hidden_size = 32, config.heads = 2, config.intermediate_size = 64, config.layers = 1;
  models::save_parameters(folder, config, models::init_parameters(config, 1));
  // As a pretrained checkpoint: without the classifier.
  std::vector<storage::NamedTensorView> encoder;
  const storage::SafetensorsFile file = storage::SafetensorsFile::open(folder + "/model.safetensors");
  for (const auto& [name, info] : file.tensors())
    if (!name.starts_with("classifier.")) encoder.push_back({name, file.view(name)});
  storage::write_safetensors(folder + "/model.safetensors", encoder);
}

}  // namespace muster::cli
