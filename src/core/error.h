// The one exception type of muster, and what its kinds mean to the caller.
// Kinds map to exit codes here and to HTTP statuses in serve/; nothing else interprets them.
#pragma once
#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace muster {

enum class ErrorKind {
  usage,             // the command line or a flag is wrong
  invalid_argument,  // a value (of a file, a request, a tensor) is wrong
  not_found,         // a file, tensor or model is not there
  io,                // the operating system refused: disk full, permission, connection
  corrupt,           // data is there but broken: hash, truncated, malformed
  unsupported,       // understood, but not something muster does
  overloaded,        // a bounded queue is full: try again later
  too_large,         // over a stated limit
  timeout,           // a deadline passed
  cancelled,         // the user or a signal stopped it
  internal,          // a bug of muster
};

/// What ends a request, a command or a job. The message is one line: what failed, where, what to do.
class Error : public std::runtime_error {
 public:
  template <typename... Args>
  Error(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

/// Process exit code of an error: 2 for usage, 1 for everything else.
int exit_code(ErrorKind kind);

/// "No such file or directory" for an errno value.
std::string errno_text(int errno_value);

}  // namespace muster

/// An invariant of our own code: a failure is a bug of muster, never of its input.
#define MUSTER_ASSERT(condition)                                                                                                       \
  do {                                                                                                                                 \
    if (!(condition))                                                                                                                  \
      throw ::muster::Error(::muster::ErrorKind::internal, "{}:{}: internal error: {} does not hold", __FILE__, __LINE__, #condition); \
  } while (false)
