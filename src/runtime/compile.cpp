#include "runtime/compile.h"

#include <functional>

#include "backend/cpu/schedule.h"
#include "passes/passes.h"
#include "runtime/backends.h"
#include "runtime/codegen.h"
#include "storage/file.h"

namespace muster::runtime {

using graph::Graph;

std::unique_ptr<backend::Executable> compile(Graph graph, const Options& options, ThreadPool& threads) {
  const Isa isa = options.isa ? *options.isa : machine_isa();
  const Precision precision = resolve_precision(options.precision, isa).precision;
  int number = 0;
  const auto dump = [&](std::string_view pass) {
    if (!options.dump_dir.empty())
      storage::write_file_atomic(fmt::format("{}/{:02}-{}.txt", options.dump_dir, number++, pass), to_string(graph));
  };
  const auto run = [&](const char* pass, const std::function<Graph(const Graph&)>& body) {
    if (options.disabled.contains(pass)) return;
    graph = body(graph);
    verify(graph);
    dump(pass);
  };

  verify(graph);
  dump("built");
  run("simplify", passes::simplify);
  run("fuse", passes::fuse);
  if (precision == Precision::bf16) run("precision", passes::to_bf16);

  std::shared_ptr<const cpu::Code> code;
  if (options.backend == "cpu")
    if (const std::vector<cpu::LoopNest> nests = cpu::loop_nests(graph); !nests.empty()) code = cpu::Code::load(generate(nests, isa));
  return make_backend(options.backend, isa, code)->compile(graph, {&threads});
}

}  // namespace muster::runtime
