// muster package: a model folder into model.tar.gz, as SageMaker unpacks it, with a manifest of hashes.
#include <CLI/CLI.hpp>

#include <filesystem>
#include <iostream>
#include <memory>
#include <set>

#include "cli/support.h"
#include "cli/verbs.h"
#include "cli/version.h"
#include "models/weights.h"
#include "storage/archive.h"
#include "storage/file.h"
#include "storage/package.h"
#include "text/tokenizer.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string model, output = "model.tar.gz";
  bool force = false, json = false;
};

void put(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::create_directories(to.parent_path(), failed);
  fs::create_hard_link(from, to, failed);  // the same file system: nothing is copied
  if (!failed) return;
  const auto space = fs::space(to.parent_path(), failed);
  const auto bytes = fs::file_size(from, failed);
  if (!failed && space.available < bytes)
    throw Error(ErrorKind::io, "{}: no room for a copy of {:.1f} MB beside the archive; free space there or choose another --output",
                from.string(), static_cast<double>(bytes) / 1e6);
  fs::copy_file(from, to, failed);
  if (failed) throw Error(ErrorKind::io, "{}: cannot copy it into the package ({})", from.string(), failed.message());
}

int run(const Flags& flags) {
  install_stop_flag();
  if (!storage::is_folder(flags.model)) throw Error(ErrorKind::not_found, "model '{}' is not a folder", flags.model);
  std::error_code ignored;
  if (fs::exists(flags.output, ignored) && !storage::is_file(flags.output))
    throw Error(ErrorKind::usage, "--output {}: give the name of a file", flags.output);
  if (!flags.force && storage::is_file(flags.output))
    throw Error(ErrorKind::usage, "{} exists: give another --output, or --force to replace it", flags.output);
  // What a package must have to be served: checked now rather than at the first deployment.
  const models::ModelConfig config = models::read_config(flags.model);
  const text::Tokenizer tokenizer = text::Tokenizer::load(flags.model);
  models::LoadReport report;
  (void)models::load_parameters(flags.model, config, {}, report);
  if (!report.initialised.empty())
    throw Error(ErrorKind::invalid_argument, "{}: the weights have no {}: run `muster train` first", flags.model,
                report.initialised.front());

  throw_if_stopped();
  storage::remove_leftovers(fs::absolute(flags.output).parent_path().string());
  const fs::path folder = flags.model;
  storage::AtomicFolder staging(flags.output + ".staging",
                                storage::AtomicFolder::Existing::replace);  // never committed: goes with the object
  const fs::path root = staging.path();
  std::set<std::string> names{"config.json"};
  for (const fs::path& file : tokenizer.files()) names.insert(file.filename().string());
  for (const storage::TreeEntry& entry : storage::list_tree(flags.model)) {
    const bool weights =
        entry.name.find('/') == std::string::npos && entry.name.ends_with(".safetensors") && entry.name != "optimizer.safetensors";
    const bool wanted = weights || entry.name == "model.safetensors.index.json" || entry.name == "README.md" ||
                        entry.name.starts_with("code/") || names.contains(entry.name);
    if (!wanted) continue;
    if (entry.kind == storage::TreeEntry::Kind::other) {
      const fs::path target = fs::weakly_canonical(folder / entry.name);
      if (entry.name.starts_with("code/") || !storage::is_file(target.string()))
        throw Error(ErrorKind::invalid_argument, "{}/{}: links and devices cannot be packed", flags.model, entry.name);
      put(target, root / entry.name);
    } else if (entry.kind == storage::TreeEntry::Kind::file) {
      put(folder / entry.name, root / entry.name);
    } else {
      std::error_code failed;
      fs::create_directories(root / entry.name, failed);
    }
  }
  storage::Manifest manifest;
  manifest.muster_version = kVersion;
  manifest.model_type = config.model_type;
  manifest.labels = config.labels;
  manifest.created_by = {{"program", std::string("muster ") + kVersion},
                         {"compiler", std::string("gcc ") + __VERSION__},
                         {"architecture", models::architecture_of(config)}};
  storage::write_manifest(root.string(), manifest);
  storage::pack_tar_gz(root.string(), flags.output, {.between_blocks = throw_if_stopped});
  const auto bytes = fs::file_size(flags.output);
  if (flags.json)
    std::cout << "{\"output\":" << json_string(flags.output) << ",\"bytes\":" << bytes << "}\n";
  else
    std::cout << fmt::format("{}: {:.1f} MB, {} labels, model type {}\n", flags.output, static_cast<double>(bytes) / 1e6,
                             config.labels.size(), config.model_type);
  return 0;
}

}  // namespace

std::function<int()> declare_package(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--model", flags->model, "model folder; its code/ is carried along untouched")->required();
  app.add_option("--output", flags->output, "archive to write")->capture_default_str();
  app.add_flag("--force", flags->force, "replace an existing archive");
  app.add_flag("--json", flags->json, "print the result as one JSON object");
  return [flags] { return run(*flags); };
}

}  // namespace muster::cli
