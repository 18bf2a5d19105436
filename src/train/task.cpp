#include "train/task.h"

#include <algorithm>

#include "autodiff/gradient.h"
#include "core/philox.h"
#include "models/classifier.h"
#include "models/flops.h"

namespace muster::train {

graph::Graph with_gradients(graph::Graph graph) {
  const auto loss = std::find_if(graph.outputs.begin(), graph.outputs.end(), [](const graph::Output& o) { return o.name == "loss"; });
  MUSTER_ASSERT(loss != graph.outputs.end());
  std::vector<graph::Value> parameters;
  for (const int32_t node : graph.leaves(graph::Op::parameter)) parameters.push_back({node, 0});
  const std::vector<graph::Value> gradients = autodiff::gradient(graph, loss->value, parameters);
  for (size_t i = 0; i < parameters.size(); ++i) graph.outputs.push_back({"grad:" + graph.at(parameters[i]).name, gradients[i]});
  return graph;
}

graph::Graph build_training(const models::ModelConfig& config, double label_smoothing) {
  models::ClassifierOptions options;
  options.training = true;
  options.label_smoothing = label_smoothing;
  return with_gradients(models::build_classifier(config, options));
}

Window make_window(const data::Loader& loader, const models::ModelConfig& config, const std::vector<double>& class_weights, int64_t step,
                   int64_t batches_per_step) {
  const int64_t per_epoch = loader.batches_per_epoch();
  const int64_t steps_per_epoch = (per_epoch + batches_per_step - 1) / batches_per_step;
  const int64_t epoch = step / steps_per_epoch, first = step % steps_per_epoch * batches_per_step;
  std::vector<data::Batch> batches;
  for (int64_t i = first; i < std::min(first + batches_per_step, per_epoch); ++i) batches.push_back(loader.batch(epoch, i));

  const auto weight_of = [&](int32_t label) {
    return label < 0 ? 0.0 : class_weights.empty() ? 1.0 : class_weights.at(static_cast<size_t>(label));
  };
  double total = 0;
  for (const data::Batch& batch : batches)
    for (const int32_t label : batch.labels) total += weight_of(label);

  Window window;
  for (const data::Batch& batch : batches) {
    std::vector<float> weights;
    for (const int32_t label : batch.labels) weights.push_back(total > 0 ? static_cast<float>(weight_of(label) / total) : 0.0f);
    models::Inputs inputs = models::make_inputs(config, batch.tokens.ids, batch.tokens.type_ids, batch.tokens.cu_seqlens);
    models::add_labels(inputs, config, batch.labels, weights);
    window.batches.push_back(std::move(inputs));
    window.rows.insert(window.rows.end(), batch.rows.begin(), batch.rows.end());
    window.tokens += batch.tokens.tokens();
    window.size.add(batch.tokens.cu_seqlens, 0);
  }
  return window;
}

uint64_t dropout_seed(uint64_t seed, int64_t step, int64_t batch_of_window) {
  // A stream of its own, so that dropout shares no random numbers with shuffles and initialisation under the same seed.
  constexpr uint64_t kStream = 0x64726f706f757431ull;
  const auto words = philox(seed, kStream + static_cast<uint64_t>(batch_of_window), static_cast<uint64_t>(step));
  return static_cast<uint64_t>(words[0]) << 32 | words[1];
}

ClassificationTask::ClassificationTask(const models::ModelConfig& config, const models::Parameters& parameters, double label_smoothing,
                                       const runtime::Options& options, ThreadPool& threads)
    : session_(std::make_unique<runtime::Session>(
          runtime::compile(build_training(config, label_smoothing), named(options, "train"), threads), parameters)) {
  for (const auto& slot : session_->signature().parameters) {
    gradients_[slot.name] = Tensor(DType::f32, parameters.find(slot.name)->second.shape());
    outputs_["grad:" + slot.name] = gradients_[slot.name];
  }
}

double ClassificationTask::run(const Window& window, uint64_t seed, int64_t step) {
  double loss = 0;
  session_->keep_packed(window.batches.size() > 1);
  for (size_t i = 0; i < window.batches.size(); ++i) {
    const auto& outputs = session_->run_into(window.batches[i], outputs_, dropout_seed(seed, step, static_cast<int64_t>(i)), i > 0);
    loss += static_cast<double>(outputs.find("loss")->second.as<float>()[0]);
  }
  return loss;
}

}  // namespace muster::train
