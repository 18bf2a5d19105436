// Runs a model's program on a backend by name, for the tests of this folder; and what they read from tests/data/models.
#pragma once
#include <string>
#include <vector>

#include "models/classifier.h"
#include "models/inputs.h"
#include "models/weights.h"

namespace muster::models {

struct Sequence {
  std::vector<int32_t> ids, type_ids;  // type_ids: empty when the model has none
};

/// Sequences back to back.
Inputs pack(const ModelConfig& config, const std::vector<Sequence>& sequences);

/// Outputs by name, in f32, of one run.
Inputs run(const std::string& backend, const graph::Graph& graph, const Parameters& parameters, const Inputs& inputs, uint64_t seed = 0);

struct GoldenStep {
  std::vector<Sequence> sequences;
  std::vector<int32_t> labels;
  double loss = 0, grad_norm = 0;
};
/// A golden.json; what it holds is said in tools/models/make_goldens.py.
struct Golden {
  std::vector<Sequence> sequences;
  std::vector<std::vector<float>> logits;
  double smoothing = 0, smoothed_loss = 0;
  std::vector<GoldenStep> steps;  // empty in folders of 16-bit weights
};
Golden read_golden(const std::string& folder);

/// tests/data/models/<name>
std::string data_folder(const std::string& name);

/// A fresh folder, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The message of the Error that `body` throws.
template <typename Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing thrown";
}

}  // namespace muster::models
