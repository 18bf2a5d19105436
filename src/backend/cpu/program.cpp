#include "backend/cpu/program.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/run.h"

namespace muster::cpu {

using backend::Bindings;
using graph::Node;
using graph::Op;
using graph::SymbolValues;
using graph::Type;
using graph::Value;

Program::Program(graph::Graph graph, Isa isa, const Tuning& tuning, ThreadPool& pool, std::shared_ptr<const Code> code)
    : graph_(std::move(graph)),
      signature_(backend::signature_of(graph_)),
      isa_(isa),
      tuning_(tuning),
      kernels_(kernels(isa)),
      pool_(pool),
      layout_(lay_out(graph_)),
      code_(std::move(code)) {
  for (int32_t n = 0; n < static_cast<int32_t>(graph_.nodes.size()); ++n) {
    const Node& node = graph_.nodes[static_cast<size_t>(n)];
    if (node.op != Op::region) continue;
    MUSTER_ASSERT(code_ != nullptr);
    Region region{schedule(*node.attrs.body), nullptr, {}};
    region.function = code_->find(region.plan.nest.name);
    for (size_t i = 0; i < region.plan.nest.arguments.size(); ++i)
      if (region.plan.nest.arguments[i].access == Access::column_sum) region.sums.push_back(i);
    regions_.emplace(n, std::move(region));
  }
  for (const Node& node : graph_.nodes) {
    const bool plain = node.op != Op::transpose || node.types[0].rank() == 2;
    const size_t rank = node.inputs.empty() ? 0 : graph_.type(node.inputs[0]).rank();
    const bool reducible =
        (node.op != Op::reduce_sum && node.op != Op::reduce_max) || node.types[0].rank() == 0 || (rank == 2 && node.attrs.axes.size() == 1);
    if (!plain || !reducible)
      throw Error(ErrorKind::unsupported, "[{}] the cpu backend has no kernel for {}", info(node.op).name, to_string(node.types[0]));
  }
}

void Program::plan(const SymbolValues& symbols) {
  if (std::equal(symbols.begin(), symbols.end(), planned_.begin(), [](int64_t now, int64_t planned) { return now <= planned; })) return;
  for (size_t i = 0; i < symbols.size(); ++i) planned_[i] = std::max(planned_[i], symbols[i]);
  std::vector<Lifetime> lives;
  for (const Layout::Temporary& t : layout_.temporaries) {
    const Type& type = graph_.type(t.value);
    lives.push_back({t.first, t.last, element_count(type.shape(planned_)) * static_cast<int64_t>(size_of(type.dtype))});
  }
  plan_ = plan_memory(lives);
  arena_.grow(static_cast<size_t>(plan_.total));
}

void Program::run(const Bindings& io, const backend::OnOutput& on_output) {
  Run run{io, solve_symbols(signature_, io), {}};
  plan(run.symbols);
  run.pointers.resize(graph_.nodes.size());
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    for (const Place& place : layout_.places[n]) {
      const auto i = static_cast<size_t>(place.index);
      void* pointer = nullptr;
      switch (place.home) {
        case Home::none: break;
        case Home::parameter: pointer = io.parameters[i].data; break;
        case Home::input: pointer = io.inputs[i].data; break;
        case Home::output: pointer = io.outputs[i].data; break;
        case Home::arena: pointer = arena_.data() + plan_.offsets[i]; break;
      }
      run.pointers[n].push_back(pointer);
    }
  }
  for (int32_t n = 0; n < static_cast<int32_t>(graph_.nodes.size()); ++n) {
    if (!layout_.skip[static_cast<size_t>(n)]) {
      backend::StepTime time{n, {}, {}};
      if (steps_ != nullptr) time.begin = std::chrono::steady_clock::now();
      step(run, n);
      if (steps_ != nullptr) time.end = std::chrono::steady_clock::now(), steps_->push_back(time);
    }
    for (const Layout::Copy& copy : layout_.copies) {
      if (copy.after != n) continue;
      const TensorView& out = io.outputs[static_cast<size_t>(copy.output)];
      const void* from = run.at(copy.from);
      if (io.accumulate && accumulates(signature_.outputs[static_cast<size_t>(copy.output)].type))
        kernels_.binary({pool_, workspace_}, Binary::add, Right::same, out.dtype, out.data, from, out.data, 1, out.elements());
      else if (out.bytes() > 0 && out.data != from)
        std::memcpy(out.data, from, out.bytes());
    }
    if (on_output)
      for (const int32_t o : layout_.finished[static_cast<size_t>(n)]) on_output(static_cast<size_t>(o));
  }
}

}  // namespace muster::cpu
