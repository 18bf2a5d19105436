#include "core/log.h"

#include <unistd.h>

#include <atomic>
#include <string>

namespace muster {
namespace {
std::atomic<LogLevel> g_level{LogLevel::info};  // the process's standard error has one level
}  // namespace

void set_log_level(LogLevel level) { g_level = level; }
LogLevel log_level() { return g_level; }

void log_line(LogLevel level, std::string_view text) {
  if (level < g_level.load()) return;
  std::string line = level == LogLevel::error     ? "error: "
                     : level == LogLevel::warning ? "warning: "
                     : level == LogLevel::debug   ? "debug: "
                                                  : "";
  line.append(text).push_back('\n');
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(STDERR_FILENO, line.data() + done, line.size() - done);
    if (n <= 0) return;  // nowhere left to complain
    done += static_cast<size_t>(n);
  }
}

}  // namespace muster
