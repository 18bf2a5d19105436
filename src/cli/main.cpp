// muster: parses the command line, runs one verb, turns errors into one line and an exit code. Objects are wired in the verbs' files.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <iostream>

#include "cli/command_line.h"
#include "cli/support.h"
#include "cli/verbs.h"
#include "cli/version.h"
#include "core/error.h"
#include "core/log.h"

namespace {

/// "--lerning_rate is unknown; did you mean --learning_rate?": CLI11 tells first what is missing, and never what was meant.
void refuse_unknown(const std::vector<std::string>& arguments, const CLI::App& app, const std::vector<CLI::App*>& commands) {
  using namespace muster;
  const auto refuse = [](const std::string& word, const std::string& meant, const std::string& verb) {
    throw Error(ErrorKind::usage, "{} is unknown{}; see `muster{} --help`", word, meant.empty() ? "" : " (did you mean " + meant + "?)",
                verb);
  };
  const auto check = [&](const std::string& argument, const CLI::App& owner, const std::string& verb) {
    std::vector<std::string> known;
    for (const CLI::Option* option : owner.get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    const std::string flag = argument.substr(0, argument.find('='));
    if (std::find(known.begin(), known.end(), flag) == known.end()) refuse(flag, cli::nearest(flag, known), verb);
  };
  if (arguments.empty()) return;
  if (arguments.front().starts_with("--")) return check(arguments.front(), app, "");
  if (arguments.front().starts_with("-")) return;
  std::vector<std::string> verbs;
  verbs.reserve(commands.size());
  for (const CLI::App* command : commands) verbs.push_back(command->get_name());
  const auto verb = std::find(verbs.begin(), verbs.end(), arguments.front());
  if (verb == verbs.end()) refuse("the verb '" + arguments.front() + "'", cli::nearest(arguments.front(), verbs), "");
  for (size_t i = 1; i < arguments.size() && arguments[i] != "--"; ++i) {
    std::string word = arguments[i];
    if (word.size() > 2 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1])) != 0) word.insert(0, "-");  // -model
    if (word.starts_with("--")) check(word, *commands[static_cast<size_t>(verb - verbs.begin())], " " + *verb);
    if (word != arguments[i]) refuse(arguments[i], word, " " + *verb);
  }
}

int run(int argc, char** argv) {
  using namespace muster;
  CLI::App app("muster takes transformer encoders from raw text to a served endpoint.", "muster");
  app.set_version_flag("--version", std::string("muster ") + cli::kVersion);
  app.require_subcommand(0, 1);
  app.footer("`muster VERB --help` tells a verb's flags. Flags may be written with '-' or '_'.");
  std::string log_level = "info";
  std::vector<std::function<int()>> runs;
  std::vector<CLI::App*> commands;
  for (const cli::Verb& verb : cli::verbs()) {
    CLI::App* command = app.add_subcommand(verb.name, verb.summary);
    command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    runs.push_back(verb.declare(*command));
    command->add_option("--log_level", log_level, "debug, info, warning or error")
        ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
        ->envname("MUSTER_LOG");
    commands.push_back(command);
  }
  try {
    std::vector<std::string> arguments = cli::canonical_arguments(argc, argv);
    refuse_unknown(arguments, app, commands);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    const auto parsed = app.get_subcommands();
    std::cout << (parsed.empty() ? app.help() : parsed.front()->help("muster"));
    return 0;
  } catch (const CLI::CallForVersion&) {
    std::cout << "muster " << cli::kVersion << "\n";
    return 0;
  } catch (const CLI::ParseError& e) {
    const auto parsed = app.get_subcommands();
    throw Error(ErrorKind::usage, "{}; see `muster{} --help`", e.what(), parsed.empty() ? "" : " " + parsed.front()->get_name());
  }
  set_log_level(log_level == "debug"     ? LogLevel::debug
                : log_level == "warning" ? LogLevel::warning
                : log_level == "error"   ? LogLevel::error
                                         : LogLevel::info);
  for (size_t i = 0; i < commands.size(); ++i)
    if (commands[i]->parsed()) return runs[i]();
  std::cerr << app.help();
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of a write, not a death
  try {
    const int code = run(argc, argv);
    std::cout.flush();
    if (!std::cout && code == 0) throw muster::Error(muster::ErrorKind::io, "standard output: cannot write (closed pipe or full disk)");
    return code;
  } catch (const muster::Error& e) {
    if (e.kind() == muster::ErrorKind::cancelled && muster::cli::stop_exit_code() != 0) return muster::cli::stop_exit_code();
    muster::log_line(muster::LogLevel::error, e.what());
    return muster::exit_code(e.kind());
  } catch (const std::bad_alloc&) {
    muster::log_line(muster::LogLevel::error, "out of memory: use a smaller batch or a machine with more");
  } catch (const std::exception& e) {
    muster::log_line(muster::LogLevel::error, std::string("internal error: ") + e.what());
  }
  return 1;
}
