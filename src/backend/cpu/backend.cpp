#include "backend/cpu/backend.h"

#include "backend/cpu/program.h"

namespace muster::cpu {
namespace {

class CpuBackend final : public backend::Backend {
 public:
  explicit CpuBackend(Isa isa) : isa_(isa) {}
  [[nodiscard]] std::unique_ptr<backend::Executable> compile(const graph::Graph& graph,
                                                             const backend::CompileOptions& options) const override {
    MUSTER_ASSERT(options.threads != nullptr);
    return std::make_unique<Program>(graph, isa_, *options.threads);
  }

 private:
  Isa isa_;
};

}  // namespace

std::unique_ptr<backend::Backend> make_backend(Isa isa) { return std::make_unique<CpuBackend>(isa); }

}  // namespace muster::cpu
