// muster compile: programs ahead of time into a compile cache, for this machine or another.
#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

#include "cli/program_of.h"
#include "cli/support.h"
#include "cli/verbs.h"
#include "runtime/backends.h"

namespace muster::cli {
namespace {

struct Flags {
  std::string model, config_name, task = "auto", next_sentence = "auto", isa = "native";
  CompilerFlags compiler;
  double label_smoothing = 0;
  bool train = false, bf16 = false, fp32 = false, json = false;
};

Isa isa_of(const std::string& name) {
  if (name == "native") return runtime::machine_isa();
  if (name == "avx2" || name == "x86-64-v3") return Isa::avx2;
  if (name == "avx512" || name == "x86-64-v4") return Isa::avx512;
  return Isa::amx;
}

int run(const Flags& flags) {
  if (flags.bf16 && flags.fp32) throw Error(ErrorKind::usage, "--bf16 and --fp32 exclude each other");
  const models::ModelConfig config = with_head(config_of(flags.model, flags.config_name), flags.task, flags.next_sentence);
  runtime::Options options;
  flags.compiler.apply(options);
  if (options.cache_folder.empty()) throw Error(ErrorKind::usage, "no folder to compile into: give --compile_cache FOLDER");
  options.isa = isa_of(flags.isa);
  options.precision = flags.bf16 ? runtime::Precision::bf16 : flags.fp32 ? runtime::Precision::f32 : runtime::Precision::automatic;
  if (flags.isa == "native") {  // as the verbs that find the programs will choose
    options.precision = runtime::resolve_precision(options).precision;
  } else {
    options.precision = runtime::resolve_precision(options.precision, *options.isa).precision;
  }
  const std::string precision = options.precision == runtime::Precision::bf16 ? "bf16" : "f32";
  std::string list;
  for (NamedProgram& program : programs_of(config, flags.train, flags.label_smoothing)) {
    throw_if_stopped();
    const runtime::CompileReport report = compile_ahead(std::move(program.graph), named(options, program.name));
    if (options.on_compiled) options.on_compiled(report);
    if (flags.json)
      list += fmt::format("{}{{\"program\":\"{}\",\"from_cache\":{},\"milliseconds\":{:.1f},\"regions\":{},\"object_bytes\":{}}}",
                          list.empty() ? "" : ",", report.program, report.from_cache, report.milliseconds(), report.regions,
                          report.object_bytes);
    else if (report.from_cache)
      std::cout << fmt::format("{:8} was there\n", report.program);
    else
      std::cout << fmt::format("{:8} compiled in {:.0f} ms: {} regions, {} KB of code\n", report.program, report.milliseconds(),
                               report.regions, (report.object_bytes + 1023) / 1024);
  }
  if (flags.json)
    std::cout << fmt::format("{{\"compile_cache\":{},\"isa\":\"{}\",\"precision\":\"{}\",\"programs\":[{}]}}\n",
                             json_string(options.cache_folder), name_of(*options.isa), precision, list);
  else
    std::cout << fmt::format("in {} for {}, {}\n", options.cache_folder, name_of(*options.isa), precision);
  return 0;
}

}  // namespace

std::function<int()> declare_compile(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--model", flags->model, "model folder or model.tar.gz");
  app.add_option("--config_name", flags->config_name, "instead of --model: tiny, minilm, bert-base, roberta-base or distilbert-base");
  declare_task_flags(app, flags->task, flags->next_sentence);
  app.add_flag("--train", flags->train,
               "the training program too (of the whole vocabulary; a classification whose texts use fewer words compiles its own)");
  app.add_option("--label_smoothing_factor", flags->label_smoothing, "of the training program")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--isa", flags->isa, "for which machine: native (this one), x86-64-v3, avx512 or amx")
      ->check(CLI::IsMember({"native", "x86-64-v3", "avx2", "x86-64-v4", "avx512", "amx"}))
      ->capture_default_str();
  app.add_flag("--bf16", flags->bf16, "products in bf16 (default: for amx; of native, what was measured)");
  app.add_flag("--fp32", flags->fp32, "everything in f32");
  app.add_flag("--json", flags->json, "print the result as one JSON object");
  declare_compiler_flags(app, flags->compiler);
  return [flags] {
    install_stop_flag();
    return run(*flags);
  };
}

}  // namespace muster::cli
