#include "core/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>

namespace muster {
namespace {

constexpr uint64_t kNoLimit = uint64_t{1} << 60;  // version 1 writes a number near 2^63 for "none"

std::string first_word(const std::string& path) {
  std::ifstream in(path);
  std::string word;
  in >> word;
  return word;
}

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <typename T>
void lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

void quota(CgroupLimits& limits, std::optional<double> amount, std::optional<double> period) {
  if (amount && period && *amount > 0 && *period > 0) lower(limits.cpus, *amount / *period);
}

void memory(CgroupLimits& limits, const std::string& path) {
  const auto bytes = number(first_word(path));
  if (bytes && *bytes > 0 && *bytes < static_cast<double>(kNoLimit)) lower(limits.memory, static_cast<uint64_t>(*bytes));
}

void read_group(CgroupLimits& limits, const std::string& folder) {
  std::ifstream max(folder + "/cpu.max");
  std::string amount, period;
  if (max >> amount >> period) quota(limits, number(amount), number(period));
  quota(limits, number(first_word(folder + "/cpu.cfs_quota_us")), number(first_word(folder + "/cpu.cfs_period_us")));
  memory(limits, folder + "/memory.max");
  memory(limits, folder + "/memory.limit_in_bytes");
}

/// The group and all above it. In a container the path may be that of the host: then only the root is there.
void read_groups(CgroupLimits& limits, const std::string& hierarchy, std::string path) {
  while (!path.empty() && path != "/") {
    read_group(limits, hierarchy + path);
    path.erase(path.find_last_of('/'));
  }
  read_group(limits, hierarchy);
}

}  // namespace

CgroupLimits cgroup_limits(const std::string& root, const std::string& self) {
  CgroupLimits limits;
  read_groups(limits, root, "");
  std::ifstream groups(self);
  for (std::string line; std::getline(groups, line);) {  // number:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos || line.size() <= second + 1 || line[second + 1] != '/') continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) {
      read_groups(limits, root, path);
    } else {
      for (const char* name : {"cpu", "memory"})
        if (("," + controllers + ",").find("," + std::string(name) + ",") != std::string::npos)
          read_groups(limits, root + "/" + name, path);
    }
  }
  return limits;
}

}  // namespace muster
