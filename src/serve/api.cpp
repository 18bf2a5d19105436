#include "serve/api.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/log.h"
#include "serve/answer.h"
#include "serve/status.h"

namespace muster::serve {
namespace {

constexpr size_t kLargeBody = size_t{64} << 10;  // read on the lane: this much text is tens of milliseconds of tokenizing
constexpr std::string_view kRoutes = "GET /, GET /ping, GET /health, POST /invocations, GET /metrics";

struct Route {
  std::string_view path;
  bool post;
};
constexpr std::array<Route, 5> kTable{{{"/", false}, {"/ping", false}, {"/health", false}, {"/metrics", false}, {"/invocations", true}}};

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }
std::string milliseconds(std::chrono::nanoseconds time) { return fmt::format("{:.3f}", seconds(time) * 1e3); }

}  // namespace

/// One request to /invocations on its way.
struct Api::Call {
  net::Responder responder;
  Clock::time_point start;
  std::string remote;
  net::CancelFlag cancelled;
  Invocation invocation = {};
  int64_t truncated = 0;
};

void Api::set_ready(Backend backend) {
  backend_ = backend;
  health_ = Health::ready;
}

void Api::handle(net::HttpRequest request, const net::Responder& responder) {
  const auto reply = [&](std::string_view route, net::HttpResponse response) {
    metrics_.count(route, response.status);
    log_debug("{} {} {} {}", request.remote, request.method, request.path, response.status);
    responder.send(std::move(response));
  };
  const auto* const route = std::find_if(kTable.begin(), kTable.end(), [&](const Route& r) { return r.path == request.path; });
  if (route == kTable.end())
    return reply("other", net::error_response(404, fmt::format("there is no {}: there are {}", request.path.substr(0, 200), kRoutes)));
  if (route->post ? request.method != "POST" : request.method != "GET" && request.method != "HEAD") {
    const std::string allow = route->post ? "POST" : "GET, HEAD";
    net::HttpResponse response =
        net::error_response(405, fmt::format("{} takes {}, not {}", route->path, allow, request.method.substr(0, 40)));
    response.headers.add("Allow", allow);
    return reply(route->path, std::move(response));
  }
  if (request.path == "/") return reply(route->path, about());
  if (request.path == "/metrics") return reply(route->path, metrics());
  if (request.path != "/invocations") return reply(route->path, ping());

  const auto call =
      std::make_shared<Call>(Call{.responder = responder, .start = Clock::now(), .remote = request.remote, .cancelled = request.cancelled});
  if (!ready()) return answer(*call, ping());
  if (request.body.size() <= kLargeBody) return invoke(request, call);
  backend_.lane->post([this, call, large = std::make_shared<net::HttpRequest>(std::move(request))] {
    if (!large->is_cancelled()) invoke(*large, call);
  });
}

/// Reads, tokenizes and queues; every failure on the way is the answer.
void Api::invoke(const net::HttpRequest& request, const std::shared_ptr<Call>& call) {
  try {
    const ModelInfo& model = backend_.model->info();
    call->invocation = read_invocation(request, options_.limits, model);
    const auto accept = accepted_media(request.headers.get("Accept"), call->invocation.accept);
    if (!accept)
      return answer(*call,
                    net::error_response(406, "answers are application/json or application/jsonlines: ask for one of them by Accept"));
    call->invocation.accept = *accept;

    Job job{.cancelled = call->cancelled, .deadline = call->start + options_.request_timeout};
    for (const Question& question : call->invocation.questions)
      for (const std::string& text : question.texts) {
        TokenizedText tokens = backend_.model->tokenize(text, question.parameters.tokenize);
        call->truncated += tokens.truncated ? 1 : 0;
        job.texts.push_back(std::move(tokens.ids));
      }
    metrics_.tokenize_seconds.add(seconds(Clock::now() - call->start));
    job.done = [this, call](std::vector<ItemResult> results) { finish(*call, std::move(results)); };
    backend_.batcher->submit(std::move(job));
  } catch (const Error& e) {
    fail(*call, e.kind(), e.what());
  } catch (const std::exception& e) {
    fail(*call, ErrorKind::internal, fmt::format("internal error: {}", e.what()));
  }
}

/// On the batcher's thread: from results to the answer.
void Api::finish(Call& call, std::vector<ItemResult> results) {
  try {
    std::chrono::nanoseconds queue{}, inference{};
    int64_t tokens = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      const ItemResult& result = results[i];
      if (result.failure) {
        const std::string which = results.size() > 1 ? fmt::format("text {} of {}: ", i + 1, results.size()) : "";
        return fail(call, result.failure->kind, which + result.failure->message);
      }
      queue = std::max(queue, result.queue);
      inference = std::max(inference, result.inference);
      tokens += result.tokens;
      metrics_.text_tokens.add(static_cast<double>(result.tokens));
    }
    metrics_.queue_seconds.add(seconds(queue));
    metrics_.inference_seconds.add(seconds(inference));
    metrics_.texts_truncated += static_cast<uint64_t>(call.truncated);

    net::HttpResponse response{.body = write_answer(call.invocation, results, backend_.model->info())};
    if (call.invocation.accept == Media::json_lines) response.content_type = "application/jsonlines";
    response.headers = {{"x-muster-tokens", std::to_string(tokens)},
                        {"x-muster-queue-ms", milliseconds(queue)},
                        {"x-muster-inference-ms", milliseconds(inference)},
                        {"x-muster-total-ms", milliseconds(Clock::now() - call.start)}};
    if (call.truncated > 0) response.headers.add("x-muster-truncated", std::to_string(call.truncated));
    answer(call, std::move(response));
  } catch (const std::exception& e) {
    fail(call, ErrorKind::internal, fmt::format("internal error: {}", e.what()));
  }
}

void Api::fail(Call& call, ErrorKind kind, std::string_view message) {
  net::HttpResponse response = answer_for(kind, message);
  if (kind == ErrorKind::overloaded) response.headers.add("Retry-After", std::to_string(backend_.batcher->retry_after().count()));
  if (response.status == 500) log_warning("{} /invocations: {}", call.remote, message);
  answer(call, std::move(response));
}

void Api::answer(Call& call, net::HttpResponse response) {
  const auto took = Clock::now() - call.start;
  metrics_.request_seconds.add(seconds(took));
  metrics_.count("/invocations", response.status);
  log_debug("{} POST /invocations {} {} ms", call.remote, response.status, milliseconds(took));
  call.responder.send(std::move(response));
}

net::HttpResponse Api::ping() const {
  const Health health = health_;
  if (health == Health::ready) return {.body = R"({"status": "ready"})"};
  net::HttpResponse response =
      net::error_response(503, health == Health::loading ? "the model is still loading: try again later" : "the server is shutting down");
  response.headers.add("Retry-After", "1");
  return response;
}

net::HttpResponse Api::about() const {
  nlohmann::ordered_json out{{"name", "muster"}, {"version", options_.version}, {"ready", ready()}};
  if (ready()) {
    const ModelInfo& model = backend_.model->info();
    out["model"] = {{"name", model.name},
                    {"model_type", model.model_type},
                    {"labels", model.labels},
                    {"max_length", model.max_length},
                    {"vocab_size", model.vocab_size},
                    {"precision", model.precision}};
  }
  out["limits"] = {{"max_body_bytes", options_.max_body_bytes},
                   {"max_client_batch_size", options_.limits.max_client_batch_size},
                   {"max_batch_tokens", options_.max_batch_tokens},
                   {"max_concurrent_requests", options_.max_concurrent_requests},
                   {"request_timeout_ms", options_.request_timeout.count()}};
  out["routes"] = kRoutes;
  return {.body = out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"};
}

net::HttpResponse Api::metrics() const {
  Metrics::Gauges gauges{.connections = connections_ ? connections_() : 0, .ready = ready()};
  if (health_ != Health::loading && backend_.batcher) {
    gauges.pending_texts = backend_.batcher->pending_texts();
    gauges.queued_tokens = backend_.batcher->queued_tokens();
  }
  return {.body = metrics_.text(gauges), .content_type = "text/plain; version=0.0.4; charset=utf-8"};
}

}  // namespace muster::serve
