// What the control group of this process may use, the groups above it counted.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace muster {

struct CgroupLimits {
  std::optional<double> cpus;      // quota over period
  std::optional<uint64_t> memory;  // bytes
};

/// Version 2 (cpu.max, memory.max) and version 1 (cpu.cfs_quota_us, memory.limit_in_bytes), the least of all groups on the way to the
/// root. `root` is where the hierarchies are mounted, `self` names the groups of a process (cgroups(7)).
CgroupLimits cgroup_limits(const std::string& root = "/sys/fs/cgroup", const std::string& self = "/proc/self/cgroup");

}  // namespace muster
