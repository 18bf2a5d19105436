// What a SageMaker hosting container is told by its environment, as the options of a server.
// Source: SageMaker developer guide, "Use your own inference code"; aws/sagemaker-inference-toolkit, environment.py and parameters.py.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace muster::serve {

using Environment = std::map<std::string, std::string>;

struct ContainerOptions {
  std::filesystem::path model = "/opt/ml/model";
  std::string host = "0.0.0.0";
  uint16_t port = 8080;                      // SAGEMAKER_BIND_TO_PORT
  std::chrono::seconds request_timeout{60};  // SAGEMAKER_MODEL_SERVER_TIMEOUT_SECONDS, else SAGEMAKER_MODEL_SERVER_TIMEOUT
  size_t max_body_bytes = size_t{6} << 20;   // SAGEMAKER_MAX_PAYLOAD_IN_MB
  std::chrono::seconds drain_timeout{25};    // SIGKILL follows SIGTERM after 30 s
};

/// Throws Error(usage) naming the variable whose value is not a number in its range.
ContainerOptions container_options(const Environment& environment);

/// The environment of this process.
Environment process_environment();

}  // namespace muster::serve
