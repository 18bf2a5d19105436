// From logits to the bytes of an answer. Same logits, same bytes: scores are f64 inside, rounded once to f32 and written in the fewest
// digits that read back to the same f32.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "serve/batcher.h"
#include "serve/invocation.h"
#include "serve/model.h"

namespace muster::serve {

/// Scores in the order of the logits. Softmax is shifted by the true maximum, so no finite logits give NaN.
std::vector<float> scores_of(std::span<const float> logits, ScoreFunction function);

/// Indices of the labels by falling logit, equal ones by rising index; at most `top_k`.
std::vector<size_t> ranked(std::span<const float> logits, std::optional<int64_t> top_k);

/// "0.93", "1.0", "1e-05": valid JSON, always with a point or an exponent. `value` must be finite.
void append_number(std::string& out, float value);

/// The body for an invocation: the shapes of Transformers' text-classification pipeline.
///   one text:            [{"label": "joy", "score": 0.93}]            a list:            [{...}, {...}]       (best label of each)
///   one text with top_k: [{...}, {...}, ...]  best first              a list with top_k: [[{...}, ...], [{...}, ...]]
/// JSON lines body: a line as above for each line; with Accept: application/json the lines become the elements of one list.
/// JSON body with Accept: application/jsonlines: a line for each element of a list, one line for a single text.
/// `results` has the texts of all questions in order, none of them failed.
std::string write_answer(const Invocation& invocation, std::span<const ItemResult> results, const ModelInfo& model);

}  // namespace muster::serve
