// The seam between serving and the engine: what a served classifier can be asked. Implementations: serve/engine.h, fakes in tests.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/token_batch.h"

namespace muster::serve {

/// How logits become scores unless a request says otherwise (Transformers' text-classification pipeline, from config.json's
/// problem_type and the number of labels).
enum class ScoreFunction { softmax, sigmoid, none };

struct ModelInfo {
  std::string name = {};                 // of the folder or package
  std::string model_type = {};           // "bert", "roberta", ...
  std::vector<std::string> labels = {};  // id2label in the order of the logits
  int32_t max_length = 512;              // tokens of one text, special ones counted
  int64_t vocab_size = 0;
  std::string precision = {};  // "f32", "bf16"
  ScoreFunction score_function = ScoreFunction::softmax;
};

struct TokenizeOptions {
  bool truncate = true;
  int32_t max_length = 0;  // 0: the model's
};

struct TokenizedText {
  std::vector<int32_t> ids;  // special tokens included, never empty
  bool truncated = false;    // tokens were cut off
};

class Model {
 public:
  virtual ~Model() = default;
  [[nodiscard]] virtual const ModelInfo& info() const = 0;

  /// Called from several threads at a time. Invalid UTF-8 never arrives here.
  /// Throws Error(too_large) naming both counts when the text has more tokens than the limit and `truncate` is off.
  [[nodiscard]] virtual TokenizedText tokenize(std::string_view text, const TokenizeOptions& options) const = 0;

  /// Logits [B, labels], row-major, of B packed sequences. Called from one thread at a time.
  virtual std::vector<float> run(const text::TokenBatch& batch) = 0;
};

}  // namespace muster::serve
