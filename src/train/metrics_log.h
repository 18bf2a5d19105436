// metrics.jsonl: every record of a run as one JSON object a line, for scripts and dashboards.
#pragma once
#include <cstdint>
#include <string>

#include "train/record.h"

namespace muster::train {

/// {"step":10,"epoch":0.1,"loss":1.2,...}: without a line end; a value that is not finite is null.
std::string to_json_line(const Record& record);

class MetricsLog {
 public:
  /// Opens output_dir/metrics.jsonl for appending. A resumed run keeps the lines up to and including `resume_step` and drops later ones
  /// (of an interrupted run that had gone on after its checkpoint); -1 starts anew. Throws Error(io).
  MetricsLog(const std::string& folder, int64_t resume_step);
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
