// A folder for one test, removed at its end, and the checks that many tests of this room make.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "core/error.h"

namespace muster::storage {

class TemporaryFolder : public ::testing::Test {
 protected:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-test-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() override { std::filesystem::remove_all(root_); }
  [[nodiscard]] std::string path(const std::string& name) const { return root_ + "/" + name; }
  /// How many names the folder holds, hidden ones too.
  [[nodiscard]] int entries() const {
    int n = 0;
    for ([[maybe_unused]] const auto& item : std::filesystem::directory_iterator(root_)) ++n;
    return n;
  }
  std::string root_;
};

/// Runs `action`, expects an Error of that kind and returns its message.
inline std::string message_of(ErrorKind kind, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

}  // namespace muster::storage
