#include "cli/command_line.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <numeric>
#include <utility>

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

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& other : known) {
    std::vector<size_t> row(other.size() + 1);  // of the table of edit distances
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < word.size(); ++i) {
      size_t diagonal = std::exchange(row[0], i + 1);
      for (size_t j = 0; j < other.size(); ++j) {
        const size_t change = diagonal + (word[i] == other[j] ? 0 : 1);
        diagonal = std::exchange(row[j + 1], std::min({change, row[j] + 1, row[j + 1] + 1}));
      }
    }
    if (row.back() < best_distance) best = other, best_distance = row.back();
  }
  return best;
}

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
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  // Verbs of two words.
  const bool two_words = !arguments.empty() && (arguments[0] == "data" || arguments[0] == "tokenizer");
  if (two_words && (arguments.size() == 1 || arguments[1].starts_with("-")))
    throw Error(ErrorKind::usage, "`muster {}` needs a second word: {}; see `muster --help`", arguments[0],
                arguments[0] == "data" ? "prepare or inspect" : "train");
  if (two_words) {
    arguments[0] += "-" + arguments[1];
    arguments.erase(arguments.begin() + 1);
  }
  if (!arguments.empty()) arguments.insert(arguments.begin() + 1, from_file.begin(), from_file.end());  // after the verb
  return arguments;
}

}  // namespace muster::cli
