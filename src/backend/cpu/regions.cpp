// Runs the regions of a program: generated code over chunks of rows, or as the epilogue of a product. Sums over the rows are made in
// parts whose borders depend on sizes only, then added up in order.
#include <algorithm>
#include <cstring>

#include "backend/cpu/program.h"
#include "backend/cpu/run.h"

namespace muster::cpu {

using graph::Node;
using graph::Value;

namespace {

constexpr int64_t kChunkElements = 16 * 1024;  // of one chunk of rows: enough to pay for handing it out
constexpr int64_t kMaxPartials = 64;           // with sums over rows: at most this many parts, of at least kMinRows rows each
constexpr int64_t kMinRows = 32;

}  // namespace

void Program::region(Run& run, int32_t n) {
  const Node& node = graph_.nodes[static_cast<size_t>(n)];
  const Region& region = regions_.at(n);
  std::vector<void*> arguments;
  for (const RegionPlan::Bound& bound : region.plan.arguments)
    arguments.push_back(bound.operand >= 0  ? run.at(node.inputs[static_cast<size_t>(bound.operand)])
                        : bound.result >= 0 ? run.at({n, bound.result})
                                            : nullptr);
  if (region.plan.prologue) return prologue_region(run, n, arguments);
  region.plan.nest.tile ? tile_region(run, n, arguments) : rows_region(run, n, arguments);
}

void Program::rows_region(Run& run, int32_t n, std::vector<void*>& arguments) {
  const Region& region = regions_.at(n);
  const LoopNest& nest = region.plan.nest;
  const int64_t rows = region.plan.space.dims[0].at(run.symbols), width = nest.width;
  const bool sums = !region.sums.empty();
  const int64_t step = sums ? std::max(kMinRows, (rows + kMaxPartials - 1) / kMaxPartials)
                            : std::max<int64_t>(1, kChunkElements / std::max<int64_t>(1, width));
  const int64_t chunks = (rows + step - 1) / step, stride = static_cast<int64_t>(region.sums.size()) * width;
  partials_.resize(static_cast<size_t>(chunks * stride));

  const size_t buffer_bytes = static_cast<size_t>(nest.buffers * padded_width(width)) * sizeof(float);
  const size_t word_bytes = nest.masks.size() * static_cast<size_t>(mask_room(width)) * sizeof(uint16_t);
  workspace_.reserve_threads(pool_.threads(), buffer_bytes + word_bytes);
  const auto function = reinterpret_cast<RowsFunction>(region.function);
  pool_.parallel_for(chunks, [&](int64_t chunk, int thread) {
    std::byte* room = workspace_.of_thread(thread);
    RegionCall call{arguments.data(), reinterpret_cast<float*>(room), reinterpret_cast<uint16_t*>(room + buffer_bytes),
                    run.io.seed,      region.plan.streams.data(),     kernels_.mask_words};
    std::vector<void*> own;
    if (sums) {
      own = arguments;
      float* parts = partials_.data() + chunk * stride;
      std::memset(parts, 0, static_cast<size_t>(stride) * sizeof(float));
      for (size_t k = 0; k < region.sums.size(); ++k) own[region.sums[k]] = parts + static_cast<int64_t>(k) * width;
      call.arguments = own.data();
    }
    function(&call, chunk * step, std::min(rows, (chunk + 1) * step));
  });
  add_partials(run, n, chunks, stride);
}

void Program::tile_region(Run& run, int32_t n, std::vector<void*>& arguments) {
  const Node& node = graph_.nodes[static_cast<size_t>(n)];
  const Region& region = regions_.at(n);
  const RegionPlan& plan = region.plan;
  const int64_t rows = plan.space.dims[0].at(run.symbols), width = plan.nest.width;
  const Math math = plan.product.bf16 ? Math::bf16 : Math::f32;
  const int64_t step = epilogue_rows_per_call(isa_, math);
  const int64_t calls = (rows + step - 1) / step, stride = static_cast<int64_t>(region.sums.size()) * width;
  partials_.assign(static_cast<size_t>(calls * stride), 0.0f);

  const size_t count = arguments.size();
  std::vector<void*> own(count * static_cast<size_t>(calls));
  std::vector<RegionCall> each;
  for (int64_t c = 0; c < calls; ++c) {
    void** mine = own.data() + static_cast<size_t>(c) * count;
    std::copy(arguments.begin(), arguments.end(), mine);
    for (size_t k = 0; k < region.sums.size(); ++k) mine[region.sums[k]] = partials_.data() + c * stride + static_cast<int64_t>(k) * width;
    each.push_back({mine, nullptr, nullptr, run.io.seed, plan.streams.empty() ? nullptr : plan.streams.data(), kernels_.mask_words});
  }
  Epilogue epilogue;
  epilogue.function = reinterpret_cast<TileFunction>(region.function);
  epilogue.calls = each.data();
  epilogue.rows_per_call = step;
  product(run, node.inputs[static_cast<size_t>(plan.left)], node.inputs[static_cast<size_t>(plan.right)], plan.product,
          {nullptr, DType::f32, width, false}, epilogue);
  add_partials(run, n, calls, stride);
}

/// A product one of whose operands the nest makes while it is packed.
void Program::prologue_region(Run& run, int32_t n, std::vector<void*>& arguments) {
  const Node& node = graph_.nodes[static_cast<size_t>(n)];
  const Region& region = regions_.at(n);
  const RegionPlan& plan = region.plan;
  RegionCall call;
  call.arguments = arguments.data();
  const Prologue made{reinterpret_cast<TileFunction>(region.function), &call};
  const int64_t rows = plan.space.dims[0].at(run.symbols), width = plan.nest.width;
  const auto side = [&](int32_t operand_index, bool transposed) {
    if (operand_index >= 0) return operand(run, node.inputs[static_cast<size_t>(operand_index)], transposed);
    return Operand{nullptr, DType::f32, transposed ? width : rows, transposed ? rows : width, width, transposed, &made};
  };
  const graph::Type& type = node.types[0];
  const Result result{run.at({n, 0}), type.dtype, type.dims[1].at(run.symbols), adds_onto(run, n)};
  matmul(side(plan.left, plan.product.transpose_a), side(plan.right, plan.product.transpose_b), plan.product.bf16 ? Math::bf16 : Math::f32,
         isa_, result, {}, pool_, workspace_, plan.product.bf16 ? tuning_.bf16 : tuning_.f32);
}

/// The results that are sums over rows, from their parts.
void Program::add_partials(Run& run, int32_t n, int64_t parts, int64_t stride) {
  const Region& region = regions_.at(n);
  const int64_t width = region.plan.nest.width;
  for (size_t k = 0; k < region.sums.size(); ++k) {
    const int32_t result = region.plan.arguments[region.sums[k]].result;
    const bool onto = layout_.places[static_cast<size_t>(n)][static_cast<size_t>(result)].home == Home::output && run.io.accumulate;
    auto* out = run.as<float>({n, result});
    const float* from = partials_.data() + static_cast<int64_t>(k) * width;
    if (!onto) std::fill(out, out + width, 0.0f);
    for (int64_t p = 0; p < parts; ++p)
      for (int64_t c = 0; c < width; ++c) out[c] += from[p * stride + c];
  }
}

}  // namespace muster::cpu
