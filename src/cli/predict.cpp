// muster predict: labels for texts from the command line, a file or standard input, by a server or by a model folder.
#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/support.h"
#include "cli/verbs.h"
#include "net/http_client.h"
#include "serve/answer.h"
#include "serve/engine.h"

namespace muster::cli {
namespace {

struct Flags {
  EngineFlags engine;
  std::string url, model, file;
  std::vector<std::string> texts;
  int max_length = 0, batch_size = 32;
  double timeout = 60;
  bool json = false, logits = false;
};

/// One label of one text. The value is a score, or a logit with --logits.
struct Scored {
  std::string label;
  float value = 0;
};
using Answers = std::vector<std::vector<Scored>>;  // a text's labels, best first

/// By a folder: the engine in this process.
class Local {
 public:
  explicit Local(const Flags& flags)
      : flags_(flags),
        source_(flags.model),
        threads_(flags.engine.thread_count()),
        model_(serve::load_engine(source_.folder(), {flags.engine.runtime(), flags.max_length}, threads_)) {}

  Answers operator()(const std::vector<std::string>& texts) {
    text::TokenBatch batch;
    for (const std::string& text : texts) batch.append(model_->tokenize(text, {}).ids, {});
    const std::vector<float> logits = model_->run(batch);
    const serve::ModelInfo& info = model_->info();
    Answers answers;
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::span<const float> row(logits.data() + i * info.labels.size(), info.labels.size());
      const std::vector<float> scores = serve::scores_of(row, flags_.logits ? serve::ScoreFunction::none : info.score_function);
      std::vector<Scored>& answer = answers.emplace_back();
      for (const size_t k : serve::ranked(row, std::nullopt)) answer.push_back({info.labels[k], scores[k]});
    }
    return answers;
  }

 private:
  const Flags& flags_;
  ModelSource source_;
  ThreadPool threads_;
  std::unique_ptr<serve::Model> model_;
};

/// By a server: POST /invocations with all labels of each text.
class Remote {
 public:
  explicit Remote(const Flags& flags) : flags_(flags), url_(flags.url) {
    while (url_.ends_with('/')) url_.pop_back();
    if (!url_.ends_with("/invocations")) url_ += "/invocations";
  }

  Answers operator()(const std::vector<std::string>& texts) {
    nlohmann::json body{{"inputs", texts}, {"parameters", {{"top_k", nullptr}}}};
    if (flags_.logits) body["parameters"]["function_to_apply"] = "none";
    if (flags_.max_length > 0) body["parameters"]["max_length"] = flags_.max_length;
    net::HttpCall call;
    call.url = url_, call.method = "POST";
    call.headers.add("content-type", "application/json");
    call.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    call.timeout = std::chrono::milliseconds(static_cast<int64_t>(flags_.timeout * 1000));
    const net::HttpReply reply = client_.request(call);
    const nlohmann::json answer = nlohmann::json::parse(reply.body, nullptr, false);
    if (reply.status != 200) {
      const bool said = answer.is_object() && answer.contains("error") && answer["error"].is_string();
      throw Error(reply.status == 429 ? ErrorKind::overloaded : ErrorKind::invalid_argument, "{}: HTTP {}: {}", url_, reply.status,
                  said ? answer["error"].get<std::string>() : "no reason given");
    }
    try {
      Answers answers;
      for (const auto& row : answer) {
        std::vector<Scored>& labels = answers.emplace_back();
        for (const auto& item : row) labels.push_back({item.at("label").get<std::string>(), item.at("score").get<float>()});
      }
      if (answers.size() == texts.size()) return answers;
    } catch (const nlohmann::json::exception&) {  // said below
    }
    throw Error(ErrorKind::corrupt, "{}: the answer is not a list of {} lists of labels; is this a muster server?", url_, texts.size());
  }

 private:
  const Flags& flags_;
  std::string url_;
  net::HttpClient client_;
};

std::string number(float value) {
  std::string text;
  serve::append_number(text, value);
  return text;
}

void print(const Flags& flags, const std::string& text, const std::vector<Scored>& labels) {
  if (!flags.json && !flags.logits) {
    std::cout << labels.front().label << '\t' << fmt::format("{:.4f}", labels.front().value) << '\t' << text << '\n';
    return;
  }
  std::string line = "{\"text\":" + json_string(text) + ",\"label\":" + json_string(labels.front().label) +
                     (flags.logits ? ",\"logits\":{" : ",\"scores\":{");
  for (size_t k = 0; k < labels.size(); ++k) line += (k ? "," : "") + json_string(labels[k].label) + ":" + number(labels[k].value);
  std::cout << line << "}}\n";
}

template <typename Predict>
void predict_all(const Flags& flags, Predict predict) {
  std::vector<std::string> waiting;
  const auto flush = [&] {
    throw_if_stopped();
    if (waiting.empty()) return;
    const Answers answers = predict(waiting);
    for (size_t i = 0; i < waiting.size(); ++i) print(flags, waiting[i], answers[i]);
    std::cout.flush();
    if (!std::cout) throw Error(ErrorKind::io, "standard output: cannot write");
    waiting.clear();
  };
  const auto take = [&](std::string&& text) {
    waiting.push_back(std::move(text));
    if (static_cast<int>(waiting.size()) == flags.batch_size) flush();
  };
  for (const std::string& text : flags.texts) take(std::string(text));
  if (!flags.file.empty())
    for_each_line(flags.file, take);
  else if (flags.texts.empty())
    for_each_line("-", take);
  flush();
}

int run(const Flags& flags) {
  if (flags.url.empty() == flags.model.empty())
    throw Error(ErrorKind::usage, "give either --url (a server) or --model (a folder or model.tar.gz)");
  if (flags.url.empty()) {
    install_stop_flag();  // a request to a server is ended by the signal itself
    Local local(flags);
    predict_all(flags, [&](const std::vector<std::string>& texts) { return local(texts); });
  } else {
    Remote remote(flags);
    predict_all(flags, [&](const std::vector<std::string>& texts) { return remote(texts); });
  }
  return 0;
}

}  // namespace

std::function<int()> declare_predict(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--url", flags->url, "server to ask: http://127.0.0.1:8080");
  app.add_option("--model", flags->model, "model folder or model.tar.gz, without a server");
  app.add_option("--file", flags->file, "file of texts, one a line; -: standard input (also when no text is given)");
  app.add_option("texts", flags->texts, "texts to label");
  app.add_option("--batch_size", flags->batch_size, "texts a batch or request")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--max_length", flags->max_length, "cut texts to this many tokens; 0: as long as the model takes")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--timeout", flags->timeout, "seconds a server may take")->check(CLI::Range(0.001, 86400.0))->capture_default_str();
  app.add_flag("--json", flags->json, "one JSON object a text, with all scores");
  app.add_flag("--logits", flags->logits, "as --json, with the raw logits");
  declare_engine_flags(app, flags->engine);
  return [flags] { return run(*flags); };
}

}  // namespace muster::cli
