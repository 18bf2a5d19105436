#include "train/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.h"
#include "storage/file.h"

namespace muster::train {
namespace {

/// The complete lines of steps up to `last_step`.
std::string lines_until(std::string_view text, int64_t last_step) {
  std::string kept;
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    const std::string_view line = text.substr(0, end);
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer() || json["step"].get<int64_t>() > last_step)
      continue;
    kept.append(line).push_back('\n');
  }
  return kept;
}

}  // namespace

std::string to_json_line(const Record& record) {
  nlohmann::ordered_json line{{"step", record.step}, {"epoch", record.epoch}};
  for (const auto& [name, value] : record.values) line[name] = value;
  return line.dump();
}

MetricsLog::MetricsLog(const std::string& folder, int64_t resume_step) : path_(folder + "/metrics.jsonl") {
  const std::string kept =
      resume_step >= 0 && storage::is_file(path_) ? lines_until(storage::read_file(path_), resume_step) : std::string();
  storage::write_file_atomic(path_, kept, "metrics");
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd_ < 0) throw Error(ErrorKind::io, "cannot write {} (metrics): {}", path_, errno_text(errno));
}

MetricsLog::~MetricsLog() {
  if (fd_ >= 0) ::close(fd_);
}

void MetricsLog::append(const Record& record) {
  const std::string line = to_json_line(record) + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(fd_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw Error(ErrorKind::io, "cannot write {} (metrics): {}; free space there or choose another --output_dir", path_,
                  errno_text(errno));
    done += static_cast<size_t>(n);
  }
}

}  // namespace muster::train
