#include "core/log.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

class Log : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::internal::CaptureStderr(); }
  void TearDown() override { set_log_level(LogLevel::info); }
  static std::string written() { return ::testing::internal::GetCapturedStderr(); }
};

TEST_F(Log, NamesTheLevelFromWarningUp) {
  log_info("epoch {}", 3);
  log_warning("{} torn", "checkpoint-5");
  log_line(LogLevel::error, "disk full");
  EXPECT_EQ(written(), "epoch 3\nwarning: checkpoint-5 torn\nerror: disk full\n");
}

TEST_F(Log, DropsLinesBelowTheLevel) {
  log_debug("not at info");
  set_log_level(LogLevel::warning);
  log_info("not at warning");
  set_log_level(LogLevel::debug);
  log_debug("seen");
  EXPECT_EQ(written(), "debug: seen\n");
}

}  // namespace
}  // namespace muster
