// A folder for one test that files are written into, and the error checks that the tests of this room make.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "core/error.h"
#include "data/dataset.h"

namespace muster::data {

class WrittenFolder : public ::testing::Test {
 protected:
  WrittenFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-test-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~WrittenFolder() override { std::filesystem::remove_all(root_); }
  [[nodiscard]] std::string path(const std::string& name) const { return root_ + "/" + name; }
  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::filesystem::remove(path(name));
    std::ofstream(path(name), std::ios::binary) << content;
  }
  [[nodiscard]] Dataset read(const ReadOptions& options = {}) const { return read_dataset(root_, options); }
  [[nodiscard]] Dataset read(const std::string& name, const ReadOptions& options = {}) const { return read_dataset(path(name), options); }

  /// Runs `action`, expects an Error of that kind and returns its message, with the folder's name written as "$".
  std::string message_of(ErrorKind kind, const std::function<void()>& action) const {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << error.what();
      std::string text = error.what();
      for (size_t at = text.find(root_); at != std::string::npos; at = text.find(root_)) text.replace(at, root_.size(), "$");
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      return text;
    }
    ADD_FAILURE() << "no error was thrown";
    return {};
  }
  /// The message of reading, as a bad value.
  std::string bad(const ReadOptions& options = {}) const {
    return message_of(ErrorKind::invalid_argument, [&] { (void)read(options); });
  }
  std::string root_;
};

/// The options with one member changed reads best in place: with(&ReadOptions::split, "test").
template <typename T, typename V>
ReadOptions with(T ReadOptions::* member, V&& value, ReadOptions options = {}) {
  options.*member = std::forward<V>(value);
  return options;
}

}  // namespace muster::data
