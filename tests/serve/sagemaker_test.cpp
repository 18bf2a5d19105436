#include "serve/sagemaker.h"

#include <gmock/gmock.h>

#include "core/error.h"

namespace muster::serve {
namespace {
using testing::HasSubstr;

TEST(SageMaker, Defaults) {
  const ContainerOptions options = container_options({{"PATH", "/bin"}, {"SAGEMAKER_BIND_TO_PORT", ""}});
  EXPECT_EQ(options.model, "/opt/ml/model");
  EXPECT_EQ(options.host, "0.0.0.0");
  EXPECT_EQ(options.port, 8080);
  EXPECT_EQ(options.request_timeout, std::chrono::seconds(60));
  EXPECT_EQ(options.max_body_bytes, 6291456U);
}

TEST(SageMaker, Environment) {
  const ContainerOptions options = container_options(
      {{"SAGEMAKER_BIND_TO_PORT", "9000"}, {"SAGEMAKER_MODEL_SERVER_TIMEOUT", "30"}, {"SAGEMAKER_MAX_PAYLOAD_IN_MB", "100"}});
  EXPECT_EQ(options.port, 9000);
  EXPECT_EQ(options.request_timeout, std::chrono::seconds(30));
  EXPECT_EQ(options.max_body_bytes, 104857600U);
  EXPECT_EQ(container_options({{"SAGEMAKER_MODEL_SERVER_TIMEOUT", "30"}, {"SAGEMAKER_MODEL_SERVER_TIMEOUT_SECONDS", "20"}}).request_timeout,
            std::chrono::seconds(20));
}

TEST(SageMaker, BadValuesNameTheVariable) {
  for (const char* value : {"0", "65536", "http", "80 ", "-1", "8080.5", "99999999999999999999"}) {
    try {
      container_options({{"SAGEMAKER_BIND_TO_PORT", value}});
      ADD_FAILURE() << value;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
      EXPECT_THAT(e.what(), HasSubstr("SAGEMAKER_BIND_TO_PORT"));
      EXPECT_THAT(e.what(), HasSubstr(value));
    }
  }
}

}  // namespace
}  // namespace muster::serve
