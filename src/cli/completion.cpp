// muster completion: scripts that complete verbs and flags in bash and zsh, made from the verbs' own declarations.
#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

#include "cli/verbs.h"

namespace muster::cli {
namespace {

/// "--model --data ..." of one verb.
std::vector<std::string> flags_of(const Verb& verb) {
  CLI::App app;
  (void)verb.declare(app);
  std::vector<std::string> flags{"--help"};
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      if (name != "help") flags.push_back("--" + name);
  return flags;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

void bash() {
  std::cout << "# muster completion for bash: source <(muster completion bash)\n"
               "_muster() {\n"
               "  local word=${COMP_WORDS[COMP_CWORD]} flags=\n"
               "  if [[ $COMP_CWORD -eq 1 ]]; then\n"
               "    COMPREPLY=($(compgen -W \"";
  for (const Verb& verb : verbs()) std::cout << verb.name << ' ';
  std::cout << "--help --version\" -- \"$word\"))\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n";
  for (const Verb& verb : verbs()) std::cout << "    " << verb.name << ") flags=\"" << joined(flags_of(verb)) << "\" ;;\n";
  std::cout
      << "  esac\n"
         "  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")); else COMPREPLY=($(compgen -f -- \"$word\")); fi\n"
         "}\n"
         "complete -o filenames -F _muster muster\n";
}

void zsh() {
  std::cout << "#compdef muster\n# muster completion for zsh: source <(muster completion zsh)\n"
               "_muster() {\n"
               "  local -a verbs flags\n"
               "  verbs=(";
  for (const Verb& verb : verbs()) std::cout << "'" << verb.name << ":" << verb.summary << "' ";
  std::cout << ")\n  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\n  fi\n  case $words[2] in\n";
  for (const Verb& verb : verbs()) std::cout << "    " << verb.name << ") flags=(" << joined(flags_of(verb)) << ") ;;\n";
  std::cout << "  esac\n"
               "  if [[ $words[CURRENT] == -* ]]; then compadd -- $flags; else _files; fi\n"
               "}\n"
               "compdef _muster muster\n";
}

}  // namespace

std::function<int()> declare_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
  return [shell] {
    *shell == "bash" ? bash() : zsh();
    return 0;
  };
}

}  // namespace muster::cli
