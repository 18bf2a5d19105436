// Folders with tokenizers for the tests: written to a temporary place, removed with the object.
#pragma once
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include <unistd.h>

#include "text/tokenizer.h"

namespace muster::text::golden {

inline const std::filesystem::path kData = std::filesystem::path(MUSTER_TEST_DATA) / "text";

class Folder {
 public:
  Folder() {
    static std::atomic<int> count{0};
    path_ = std::filesystem::temp_directory_path() / ("muster_text_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  Folder(Folder&&) = delete;
  Folder& operator=(Folder&&) = delete;

  const Folder& write(const char* name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return *this;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] Tokenizer load() const { return Tokenizer::load(path_); }

 private:
  std::filesystem::path path_;
};

inline nlohmann::json read_json(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return nlohmann::json::parse(stream);
}

/// The small tokenizers of tests/data/text, with a merge patch.
inline nlohmann::json base_json(const std::string& base, const nlohmann::json& patch = nlohmann::json::object()) {
  nlohmann::json json = read_json(kData / (base + ".json"));
  json.merge_patch(patch);
  return json;
}

inline Tokenizer load_json(const nlohmann::json& json) {
  const Folder folder;
  return folder.write("tokenizer.json", json.dump()).load();
}

inline Tokenizer load_base(const std::string& base, const nlohmann::json& patch = nlohmann::json::object()) {
  return load_json(base_json(base, patch));
}

}  // namespace muster::text::golden
