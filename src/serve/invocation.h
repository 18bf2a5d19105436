// What a request to /invocations asks for, read from its body: texts, options and the shape of the answer. Nothing is run here.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"
#include "serve/model.h"

namespace muster::serve {

struct InvocationLimits {
  int64_t max_client_batch_size = 128;  // texts of one request
  int max_json_depth = 16;
};

/// {"parameters": {...}} of a request.
struct Parameters {
  bool top_k_given = false;
  std::optional<int64_t> top_k;  // empty: all labels
  std::optional<ScoreFunction> function_to_apply;
  TokenizeOptions tokenize;
};

/// One "inputs": a text or a list of them.
struct Question {
  std::vector<std::string> texts = {};
  bool is_list = false;
  Parameters parameters = {};
};

enum class Media { json, json_lines };

/// json: one question, one answer. json_lines: a question a line, an answer a line.
struct Invocation {
  std::vector<Question> questions;
  bool lines = false;  // the body was JSON lines
  Media accept = Media::json;
};

/// Reads the body by its Content-Type (none is application/json):
/// - application/json: {"inputs": X, "parameters": {...}} or X itself, where X is "text", {"text": "text"} or a list of such;
/// - application/jsonlines, application/x-jsonlines, application/jsonl, application/x-ndjson: one such JSON a line;
/// - text/plain: the whole body is one text;
/// - text/csv: one text a record (RFC 4180), the answer is that of a list; a first record "inputs" is a header.
/// parameters: top_k (1.. or null), function_to_apply ("softmax", "sigmoid", "none"), truncation (bool), max_length (1..the model's),
/// padding (accepted, without effect: nothing is padded).
/// The answer's type follows Accept; without one, or with */*, it is that of the body.
/// Throws Error: unsupported (415, media type), invalid_argument (400: bytes that are not UTF-8, JSON with its place, an element with its
/// JSON path, an unknown key), too_large (413: texts).
/// Pairs ({"text", "text_pair"} or ["a", "b"] inside a list) are refused.
Invocation read_invocation(const net::HttpRequest& request, const InvocationLimits& limits, const ModelInfo& model);

/// Which of the media types muster answers in the Accept header asks for; empty when none of them (406).
/// `preferred` is taken for */*, application/* and a missing header. Parameters other than q are ignored.
std::optional<Media> accepted_media(std::optional<std::string_view> accept, Media preferred);

/// Byte offset of the first byte that is not part of valid UTF-8; empty when all is valid.
std::optional<size_t> invalid_utf8_at(std::string_view bytes);

/// Texts of CSV records with one field each. Throws Error(invalid_argument) with the line.
std::vector<std::string> read_csv_texts(std::string_view body);

}  // namespace muster::serve
