#include "cli/command_line.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "storage/file.h"

namespace muster::cli {
namespace {

std::string canonical(std::string argument) {
  if (!argument.starts_with("--") || argument.size() < 3) return argument;
  const size_t end = std::min(argument.find('='), argument.size());
  std::replace(argument.begin() + 2, argument.begin() + static_cast<std::ptrdiff_t>(end), '-', '_');
  return argument;
}

std::string scalar(const YAML::Node& value, const std::string& path, const std::string& key) {
  if (value.IsScalar()) return value.Scalar();
  if (value.IsNull()) return "";
  if (value.IsSequence()) {
    std::string joined;
    for (const YAML::Node& item : value) joined += (joined.empty() ? "" : ",") + scalar(item, path, key);
    return joined;
  }
  throw Error(ErrorKind::usage, "{}:{}: '{}' must be a value or a list, not a mapping", path, value.Mark().line + 1, key);
}

}  // namespace

std::vector<std::string> yaml_arguments(const std::string& path) {
  YAML::Node root;
  try {
    root = YAML::Load(storage::read_file(path));
  } catch (const YAML::ParserException& e) {
    throw Error(ErrorKind::corrupt, "{}:{}: not YAML: {}", path, e.mark.line + 1, e.msg);
  }
  if (root.IsNull()) return {};
  if (!root.IsMap()) throw Error(ErrorKind::usage, "{}: a mapping of flags is expected, like `learning_rate: 1e-4`", path);
  std::vector<std::string> arguments;
  for (const auto& entry : root) {
    const std::string key = entry.first.Scalar();
    if (key.empty() || key == "config") throw Error(ErrorKind::usage, "{}:{}: '{}' is no flag", path, entry.first.Mark().line + 1, key);
    arguments.push_back(canonical("--" + key) + "=" + scalar(entry.second, path, key));
  }
  return arguments;
}

std::vector<std::string> canonical_arguments(int argc, char** argv) {
  std::vector<std::string> from_file, arguments;
  bool literal = false;
  for (int i = 1; i < argc; ++i) {
    std::string argument = literal ? argv[i] : canonical(argv[i]);
    literal = literal || argument == "--";
    if (!literal && (argument == "--config" || argument.starts_with("--config="))) {
      if (argument == "--config" && i + 1 == argc) throw Error(ErrorKind::usage, "--config needs a file");
      const std::vector<std::string> more = yaml_arguments(argument == "--config" ? argv[++i] : argument.substr(9));
      from_file.insert(from_file.end(), more.begin(), more.end());
      continue;
    }
    arguments.push_back(std::move(argument));
  }
  if (!arguments.empty()) arguments.insert(arguments.begin() + 1, from_file.begin(), from_file.end());  // after the verb
  return arguments;
}

}  // namespace muster::cli
