#include "core/cgroup.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace muster {
namespace {

class Cgroup : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "muster_cgroup_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + name).parent_path());
    std::ofstream(root_ + "/" + name) << content << "\n";
  }
  CgroupLimits limits() const { return cgroup_limits(root_, root_ + "/self"); }
  std::string root_;
};

TEST_F(Cgroup, WithoutGroupsThereIsNoLimit) {
  EXPECT_FALSE(limits().cpus);
  EXPECT_FALSE(limits().memory);
  write("cpu.max", "max 100000");
  write("memory.max", "max");
  write("self", "0::/a");
  EXPECT_FALSE(limits().cpus);
  EXPECT_FALSE(limits().memory);
}

TEST_F(Cgroup, TheLeastOnTheWayToTheRootCounts) {
  write("self", "0::/slice/job/step");
  write("slice/cpu.max", "150000 100000");
  write("slice/job/cpu.max", "max 100000");
  write("slice/job/step/cpu.max", "400000 100000");
  write("slice/job/memory.max", "1073741824");
  write("slice/memory.max", "4294967296");
  EXPECT_DOUBLE_EQ(limits().cpus.value(), 1.5);
  EXPECT_EQ(limits().memory.value(), uint64_t{1} << 30);
}

TEST_F(Cgroup, AContainersRootIsEnough) {
  write("self", "0::/../../host/path/that/is/not/here");
  write("cpu.max", "50000 100000");
  write("memory.max", "2000000");
  EXPECT_DOUBLE_EQ(limits().cpus.value(), 0.5);
  EXPECT_EQ(limits().memory.value(), 2000000u);
}

TEST_F(Cgroup, VersionOne) {
  write("self", "9:name=systemd:/\n4:cpu,cpuacct:/docker/x\n3:memory:/docker/x");
  write("cpu/docker/x/cpu.cfs_quota_us", "250000");
  write("cpu/docker/x/cpu.cfs_period_us", "100000");
  write("cpu/cpu.cfs_quota_us", "-1");
  write("cpu/cpu.cfs_period_us", "100000");
  write("memory/docker/x/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_DOUBLE_EQ(limits().cpus.value(), 2.5);
  EXPECT_FALSE(limits().memory);
  write("memory/memory.limit_in_bytes", "123456789");
  EXPECT_EQ(limits().memory.value(), 123456789u);
}

TEST_F(Cgroup, NonsenseIsNoLimit) {
  write("self", "nonsense\n0:\n:::\n0::relative");
  write("cpu.max", "abc def");
  write("memory.max", "-5");
  EXPECT_FALSE(limits().cpus);
  EXPECT_FALSE(limits().memory);
}

}  // namespace
}  // namespace muster
