#include "train/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "storage/file.h"

namespace muster::train {
std::string to_json_line(const Record& record) {
  nlohmann::ordered_json line{{"step", record.step}, {"epoch", record.epoch}};
  for (const auto& [name, value] : record.values) line[name] = value;
  return line.dump();
}

MetricsLog::MetricsLog(const std::string& folder, const std::vector<Record>& earlier) : path_(folder + "/metrics.jsonl") {
  std::string lines;
  for (const Record& record : earlier) lines += to_json_line(record) + "\n";
  storage::write_file_atomic(path_, lines, "metrics");
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
