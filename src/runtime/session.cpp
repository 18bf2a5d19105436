#include "runtime/compile.h"

namespace muster::runtime {

using backend::Bindings;
using backend::Signature;

Session::Session(std::unique_ptr<backend::Executable> executable, const TensorMap& parameters)
    : executable_(std::move(executable)), keep_(parameters) {
  for (const Signature::Slot& slot : executable_->signature().parameters) {
    const auto found = keep_.find(slot.name);
    if (found == keep_.end()) throw Error(ErrorKind::invalid_argument, "[session] the program's parameter '{}' is not given", slot.name);
    parameters_.push_back(found->second.view());
  }
}

const TensorMap& Session::run(const TensorMap& inputs, uint64_t seed) { return run_into(inputs, {}, seed, false); }

const TensorMap& Session::run_into(const TensorMap& inputs, const TensorMap& outputs, uint64_t seed, bool accumulate) {
  const Signature& signature = executable_->signature();
  Bindings io;
  io.parameters = parameters_, io.seed = seed, io.parameters_version = version_, io.accumulate = accumulate;
  io.keep_packed = keep_packed_;
  for (const Signature::Slot& slot : signature.inputs) {
    const auto found = inputs.find(slot.name);
    if (found == inputs.end()) throw Error(ErrorKind::invalid_argument, "[session] the program's input '{}' is not given", slot.name);
    io.inputs.push_back(found->second.view());
  }
  // The sizes of the outputs follow from the inputs: solved on the inputs alone, checked by the program on everything.
  const graph::SymbolValues symbols = backend::solve_symbols({{}, signature.inputs, {}}, {{}, io.inputs, {}, 0, 0, false, false});
  for (const Signature::Slot& slot : signature.outputs) {
    const Shape shape = slot.type.shape(symbols);
    Tensor& tensor = outputs_[slot.name];
    if (const auto given = outputs.find(slot.name); given != outputs.end())
      tensor = given->second;
    else if (!tensor.defined() || tensor.shape() != shape)
      tensor = Tensor(slot.type.dtype, shape);
    io.outputs.push_back(tensor.view());
  }
  executable_->run(io);
  return outputs_;
}

}  // namespace muster::runtime
