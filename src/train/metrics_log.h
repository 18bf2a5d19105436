// metrics.jsonl: every record of a run as one JSON object a line, for scripts and dashboards.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "train/record.h"

namespace muster::train {

/// {"step":10,"epoch":0.1,"loss":1.2,...}: without a line end; a value that is not finite is null.
std::string to_json_line(const Record& record);

class MetricsLog {
 public:
  /// Opens <folder>/metrics.jsonl with the lines of `earlier` in it: those a resumed run has from its checkpoint. What an interrupted
  /// session had logged after that checkpoint is dropped, it comes again. Throws Error(io).
  MetricsLog(const std::string& folder, const std::vector<Record>& earlier);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  /// The line reaches the file before the call returns.
  void append(const Record& record);

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace muster::train
