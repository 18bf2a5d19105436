#include "train/optimizer.h"

#include <cmath>

#include "graph/builder.h"

namespace muster::train {

graph::Graph build_optimizer(const models::Parameters& parameters, const TrainingArguments& arguments) {
  graph::Graph graph;
  graph::Builder b(graph);
  const graph::Value scalars = b.input("scalars", DType::f32, {4});
  for (const auto& [name, tensor] : parameters) {
    const std::vector<graph::Dim> dims(tensor.shape().begin(), tensor.shape().end());
    graph::Attrs attrs;
    attrs.beta1 = arguments.adam_beta1, attrs.beta2 = arguments.adam_beta2, attrs.value = arguments.adam_epsilon;
    attrs.weight_decay = models::has_decay(name) ? arguments.weight_decay : 0;
    if (arguments.optim == Optimizer::lamb) attrs.parts = models::stacked_parts(name);
    const graph::Value parameter = b.parameter(name, dims);
    const graph::Value gradient = b.input("grad:" + name, DType::f32, dims);
    const graph::Value first = b.input("m:" + name, DType::f32, dims), second = b.input("v:" + name, DType::f32, dims);
    const graph::Value updated = b.emit(arguments.optim == Optimizer::lamb ? graph::Op::lamb : graph::Op::adamw,
                                        {parameter, gradient, first, second, scalars}, attrs);
    b.output(name, updated);
    b.output("m:" + name, {updated.node, 1});
    b.output("v:" + name, {updated.node, 2});
  }
  return graph;
}

OptimizerStep::OptimizerStep(const models::Parameters& parameters, const TrainingArguments& arguments, const runtime::Options& options,
                             ThreadPool& threads)
    : beta1_(arguments.adam_beta1), beta2_(arguments.adam_beta2) {
  for (const auto& [name, tensor] : parameters) {
    inputs_["m:" + name] = first_[name] = Tensor(DType::f32, tensor.shape());
    inputs_["v:" + name] = second_[name] = Tensor(DType::f32, tensor.shape());
    outputs_[name] = tensor;
    outputs_["m:" + name] = first_[name];
    outputs_["v:" + name] = second_[name];
  }
  inputs_["scalars"] = Tensor(DType::f32, {4});
  runtime::Options f32 = named(options, "optimizer");
  f32.precision = runtime::Precision::f32;
  session_ = std::make_unique<runtime::Session>(runtime::compile(build_optimizer(parameters, arguments), f32, threads), parameters);
}

void OptimizerStep::update(const models::Parameters& gradients, int64_t step, double learning_rate, double gradient_factor) {
  for (const auto& [name, tensor] : gradients) inputs_["grad:" + name] = tensor;
  const auto scalars = inputs_.at("scalars").as<float>();
  const auto t = static_cast<double>(step);
  scalars[0] = static_cast<float>(learning_rate);
  scalars[1] = static_cast<float>(1 - std::pow(beta1_, t));
  scalars[2] = static_cast<float>(1 - std::pow(beta2_, t));
  scalars[3] = static_cast<float>(gradient_factor);
  session_->run_into(inputs_, outputs_, 0, false);
  session_->parameters_changed();
}

}  // namespace muster::train
