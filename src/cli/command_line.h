// What happens to the command line before it is parsed: spelling of flags, and flags from a YAML file.
#pragma once
#include <string>
#include <vector>

namespace muster::cli {

/// argv without the program's name, in order: `--some-flag[=v]` becomes `--some_flag[=v]` (values are left alone), and `--config FILE`
/// is replaced by the flags of that YAML file, put before the others of the verb so that the command line wins.
/// `help` and `help VERB` become `--help` and `VERB --help`; `data prepare` becomes the verb `data-prepare`, `tokenizer train` likewise.
/// A YAML key is a flag's name; true and false are switches, a list becomes a comma-separated value.
/// Throws Error(usage|not_found|corrupt) naming file and line.
std::vector<std::string> canonical_arguments(int argc, char** argv);

/// The word of `known` that `word` may have been meant as; empty when none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

/// The flags of one YAML file.
std::vector<std::string> yaml_arguments(const std::string& path);

}  // namespace muster::cli
