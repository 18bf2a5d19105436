// The served model on the real engine: a Hugging Face folder behind the Model seam. Also what `muster predict --model` runs on.
#pragma once
#include <memory>
#include <string>

#include "core/threads.h"
#include "runtime/compile.h"
#include "serve/model.h"

namespace muster::serve {

struct EngineOptions {
  runtime::Options runtime;  // backend, precision
  int32_t max_length = 0;    // tokens of one text at most; 0: what tokenizer and position table allow
};

/// Loads config, tokenizer and weights of `folder` and compiles the classifier. `threads` outlives the model.
/// Throws what they throw; Error(invalid_argument) when the head is missing (a served model is never initialised at random) or the
/// tokenizer has ids that the embedding table has no row for.
std::unique_ptr<Model> load_engine(const std::string& folder, const EngineOptions& options, ThreadPool& threads);

}  // namespace muster::serve
