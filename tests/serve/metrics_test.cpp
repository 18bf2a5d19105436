#include "serve/metrics.h"

#include <gmock/gmock.h>

#include "serve/status.h"

namespace muster::serve {
namespace {
using testing::HasSubstr;

TEST(Metrics, PrometheusText) {
  Metrics metrics;
  metrics.count("/ping", 200);
  metrics.count("/ping", 200);
  metrics.count("/invocations", 429);
  metrics.queue_seconds.add(0.0001);  // a bound belongs to its bucket
  metrics.queue_seconds.add(0.003);
  metrics.queue_seconds.add(100);
  const std::string text = metrics.text({.pending_texts = 3, .ready = true});
  EXPECT_THAT(text, HasSubstr("muster_requests_total{route=\"/ping\",status=\"200\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("muster_requests_total{route=\"/invocations\",status=\"429\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("muster_stage_duration_seconds_bucket{stage=\"queue\",le=\"0.0001\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("muster_stage_duration_seconds_bucket{stage=\"queue\",le=\"0.002\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("muster_stage_duration_seconds_bucket{stage=\"queue\",le=\"0.005\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("muster_stage_duration_seconds_bucket{stage=\"queue\",le=\"60\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("muster_stage_duration_seconds_bucket{stage=\"queue\",le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("muster_stage_duration_seconds_count{stage=\"queue\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("muster_pending_texts 3\n"));
  EXPECT_THAT(text, HasSubstr("muster_ready 1\n"));
  EXPECT_THAT(text, HasSubstr("process_resident_memory_bytes "));
}

TEST(Status, EveryKindHasOne) {
  EXPECT_EQ(status_of(ErrorKind::usage), 400);
  EXPECT_EQ(status_of(ErrorKind::invalid_argument), 400);
  EXPECT_EQ(status_of(ErrorKind::not_found), 404);
  EXPECT_EQ(status_of(ErrorKind::too_large), 413);
  EXPECT_EQ(status_of(ErrorKind::unsupported), 415);
  EXPECT_EQ(status_of(ErrorKind::overloaded), 429);
  EXPECT_EQ(status_of(ErrorKind::cancelled), 503);
  EXPECT_EQ(status_of(ErrorKind::timeout), 504);
  for (const ErrorKind kind : {ErrorKind::io, ErrorKind::corrupt, ErrorKind::internal}) EXPECT_EQ(status_of(kind), 500);
}

}  // namespace
}  // namespace muster::serve
