// Log lines on standard error, one line a call. Standard output belongs to results.
#pragma once
#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace muster {

enum class LogLevel { debug, info, warning, error };

/// Lines below `level` are dropped. Set once by cli from --log_level or MUSTER_LOG; the default is info.
void set_log_level(LogLevel level);
LogLevel log_level();

/// Writes "warning: text\n" (the level is named from warning up) in one write, so that lines of threads do not mix.
void log_line(LogLevel level, std::string_view text);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  if (log_level() <= LogLevel::debug) log_line(LogLevel::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (log_level() <= LogLevel::info) log_line(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  if (log_level() <= LogLevel::warning) log_line(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace muster
