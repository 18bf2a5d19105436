#include "backend/cpu/backend.h"

#include "backend/cpu/program.h"

namespace muster::cpu {
namespace {

class CpuBackend final : public backend::Backend {
 public:
  CpuBackend(Isa isa, const Tuning& tuning, std::shared_ptr<const Code> code) : isa_(isa), tuning_(tuning), code_(std::move(code)) {}
  [[nodiscard]] std::unique_ptr<backend::Executable> compile(const graph::Graph& graph,
                                                             const backend::CompileOptions& options) const override {
    MUSTER_ASSERT(options.threads != nullptr);
    return std::make_unique<Program>(graph, isa_, tuning_, *options.threads, code_);
  }

 private:
  Isa isa_;
  Tuning tuning_;
  std::shared_ptr<const Code> code_;
};

}  // namespace

std::unique_ptr<backend::Backend> make_backend(Isa isa, const Tuning& tuning, std::shared_ptr<const Code> code) {
  return std::make_unique<CpuBackend>(isa, tuning, std::move(code));
}

}  // namespace muster::cpu
