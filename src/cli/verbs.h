// The verbs of the program: each is one file of this folder that declares its flags and says how it runs.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;  // CLI11
}

namespace muster::cli {

/// Declares flags on the given (sub)command and returns what runs after parsing; the exit code is its result.
using Declare = std::function<int()> (*)(CLI::App&);

struct Verb {
  std::string name, summary;
  Declare declare;
};
/// In the order of --help.
const std::vector<Verb>& verbs();

std::function<int()> declare_train(CLI::App& app);
std::function<int()> declare_tokenizer_train(CLI::App& app);
std::function<int()> declare_data_prepare(CLI::App& app);
std::function<int()> declare_data_inspect(CLI::App& app);
std::function<int()> declare_top(CLI::App& app);
std::function<int()> declare_eval(CLI::App& app);
std::function<int()> declare_package(CLI::App& app);
std::function<int()> declare_serve(CLI::App& app);
std::function<int()> declare_predict(CLI::App& app);
std::function<int()> declare_fill_mask(CLI::App& app);
std::function<int()> declare_tokenize(CLI::App& app);
std::function<int()> declare_compile(CLI::App& app);
std::function<int()> declare_explain(CLI::App& app);
std::function<int()> declare_doctor(CLI::App& app);
std::function<int()> declare_completion(CLI::App& app);

}  // namespace muster::cli
