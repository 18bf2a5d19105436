// muster serve: one model behind HTTP until SIGTERM or SIGINT.
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "cli/support.h"
#include "cli/verbs.h"
#include "cli/version.h"
#include "core/log.h"
#include "serve/engine.h"
#include "serve/sagemaker.h"
#include "serve/server.h"
#include "storage/file.h"

namespace muster::cli {
namespace {

struct Flags {
  EngineFlags engine;
  std::string model, host;
  int port = -1, max_length = 0;
  double max_payload_mb = 0, request_timeout = 0, drain_timeout = 0;
  serve::ServerOptions server;
};

/// What the environment of a container says, where the command line is silent.
void take_container_defaults(Flags& flags) {
  const serve::ContainerOptions container = serve::container_options(serve::process_environment());
  const bool in_container = flags.model.empty();
  if (in_container) flags.model = container.model.string();
  if (in_container && !storage::is_folder(flags.model))
    throw Error(ErrorKind::usage,
                "give --model FOLDER or model.tar.gz: without it the model is taken from {}, as in a SageMaker container, and that is no "
                "folder here",
                flags.model);
  if (flags.host.empty()) flags.host = in_container ? container.host : "127.0.0.1";
  if (flags.port < 0) flags.port = container.port;
  flags.server.http.max_body_bytes =
      flags.max_payload_mb > 0 ? static_cast<size_t>(flags.max_payload_mb * 1048576.0) : container.max_body_bytes;
  flags.server.request_timeout =
      flags.request_timeout > 0 ? std::chrono::milliseconds(static_cast<int64_t>(flags.request_timeout * 1000)) : container.request_timeout;
  if (flags.drain_timeout <= 0) flags.drain_timeout = static_cast<double>(container.drain_timeout.count());
}

int run(Flags& flags) {
  take_container_defaults(flags);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // inherited by every thread: only sigwait below takes them

  const ModelSource source(flags.model);
  if (!source.verified()) log_info("{}: no manifest, so its files are not checked against hashes", flags.model);
  ThreadPool threads(flags.engine.thread_count());
  flags.server.http.host = flags.host;
  flags.server.http.port = static_cast<uint16_t>(flags.port);
  flags.server.version = kVersion;
  serve::EngineOptions engine;
  engine.runtime = flags.engine.runtime();
  engine.max_length = flags.max_length;
  serve::InferenceServer server(flags.server, [&] { return serve::load_engine(source.folder(), engine, threads); });
  const serve::ModelInfo& model = server.model();
  log_info("serving {} ({}, {} labels, {}, at most {} tokens a text, {} threads) on http://{}:{}", model.name, model.model_type,
           model.labels.size(), model.precision, model.max_length, threads.threads(),
           flags.host.find(':') == std::string::npos ? flags.host : "[" + flags.host + "]", server.port());
  int signal = 0;
  sigwait(&signals, &signal);
  log_info("{}: finishing what has begun", signal == SIGINT ? "SIGINT" : "SIGTERM");
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // a second one ends at once
  const bool clean = server.drain(std::chrono::milliseconds(static_cast<int64_t>(flags.drain_timeout * 1000)));
  if (!clean) log_warning("some requests were cut off after {} s", flags.drain_timeout);
  return clean ? 0 : 1;
}

}  // namespace

std::function<int()> declare_serve(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--model", flags->model, "model folder or model.tar.gz (default: /opt/ml/model, as in a SageMaker container)");
  app.add_option("--host", flags->host, "address to listen on (default: 127.0.0.1; 0.0.0.0 when --model is not given)");
  app.add_option("--port", flags->port, "port; 0: any free one (default: 8080, or SAGEMAKER_BIND_TO_PORT)")->check(CLI::Range(0, 65535));
  app.add_option("--max_batch_tokens", flags->server.batcher.max_batch_tokens, "tokens that run together at most")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--max_batch_requests", flags->server.batcher.max_batch_requests, "texts that run together at most")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--max_concurrent_requests", flags->server.batcher.max_concurrent_requests,
                 "texts waiting or running at most; more get 429")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--max_client_batch_size", flags->server.limits.max_client_batch_size, "texts of one request at most; more get 413")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--max_payload_mb", flags->max_payload_mb, "body of a request at most (default: 6, or SAGEMAKER_MAX_PAYLOAD_IN_MB)")
      ->check(CLI::Range(0.001, 1024.0));
  app.add_option("--max_length", flags->max_length, "tokens of a text at most; 0: as long as the model takes")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--max_connections", flags->server.http.max_connections, "open connections at most; more get 503")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--request_timeout", flags->request_timeout,
                 "seconds until a request gets 504 (default: 60, or SAGEMAKER_MODEL_SERVER_TIMEOUT)")
      ->check(CLI::Range(0.001, 86400.0));
  app.add_option("--drain_timeout", flags->drain_timeout, "seconds to finish requests after SIGTERM (default: 25)")
      ->check(CLI::Range(0.001, 86400.0));
  app.add_option("--config", "YAML file of flags; the command line wins")->type_name("FILE");
  declare_engine_flags(app, flags->engine);
  return [flags] { return run(*flags); };
}

}  // namespace muster::cli
