// Runs the built program as a user does: a process with arguments, input and signals.
#pragma once
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace muster::cli {

struct Finished {
  int code = 0;  // exit code, or 128 + the signal that ended it
  std::string out, err;
};

struct Start {
  std::vector<std::string> arguments;
  std::string input;                               // standard input
  std::map<std::string, std::string> environment;  // beside the test's own
  std::string folder;                              // working folder; empty: the test's
  long file_size_limit = 0;                        // RLIMIT_FSIZE: what a full disk looks like to a writer
};

/// A running program; killed and reaped by the destructor.
class Process {
 public:
  explicit Process(Start start);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t id() const { return pid_; }
  void signal(int number) const;
  /// Waits until standard error holds `text`; false when the program ended or 60 s passed.
  bool wait_for(const std::string& text);
  /// Waits for the end.
  Finished finish();
  [[nodiscard]] std::string error_so_far() const;

 private:
  pid_t pid_ = -1;
  std::string folder_;  // of the files that catch output
};

/// Runs to the end.
Finished run(Start start);
inline Finished run(std::vector<std::string> arguments) {
  Start start;
  start.arguments = std::move(arguments);
  return run(std::move(start));
}

/// A fresh folder, removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string read(const std::string& path);
void write(const std::string& path, const std::string& text);
std::vector<std::string> names(const std::string& folder);

/// A small labelled set in the TweetEval layout, and a tiny model folder with a tokenizer that fits it.
void make_data(const std::string& folder, int rows);
void make_model(const std::string& folder);

}  // namespace muster::cli
