#include "serve/sagemaker.h"

#include <unistd.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "core/error.h"

namespace muster::serve {
namespace {

/// The whole number in a variable; empty when it is not set or empty.
std::optional<int64_t> number(const Environment& environment, const std::string& name, int64_t low, int64_t high) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  const std::string& text = found->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    throw Error(ErrorKind::usage, "environment variable {} is '{}': it must be a whole number from {} to {}", name, text, low, high);
  return value;
}

}  // namespace

ContainerOptions container_options(const Environment& environment) {
  ContainerOptions options;
  if (const auto port = number(environment, "SAGEMAKER_BIND_TO_PORT", 1, 65535)) options.port = static_cast<uint16_t>(*port);
  auto timeout = number(environment, "SAGEMAKER_MODEL_SERVER_TIMEOUT_SECONDS", 1, 3600);
  if (!timeout) timeout = number(environment, "SAGEMAKER_MODEL_SERVER_TIMEOUT", 1, 3600);
  if (timeout) options.request_timeout = std::chrono::seconds(*timeout);
  if (const auto megabytes = number(environment, "SAGEMAKER_MAX_PAYLOAD_IN_MB", 1, 1024))
    options.max_body_bytes = static_cast<size_t>(*megabytes) << 20;
  return options;
}

Environment process_environment() {
  Environment out;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    if (const size_t equals = text.find('='); equals != std::string_view::npos)
      out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

}  // namespace muster::serve
