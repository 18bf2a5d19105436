#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "core/hash.h"

namespace muster {
namespace {

TEST(Error, CarriesItsKindAndMessage) {
  const Error e(ErrorKind::not_found, "{}:{}: no tensor '{}'", "model.safetensors", 3, "x");
  EXPECT_EQ(e.kind(), ErrorKind::not_found);
  EXPECT_STREQ(e.what(), "model.safetensors:3: no tensor 'x'");
}

TEST(Error, OnlyUsageExitsWithTwo) {
  EXPECT_EQ(exit_code(ErrorKind::usage), 2);
  for (const ErrorKind kind : {ErrorKind::invalid_argument, ErrorKind::io, ErrorKind::corrupt, ErrorKind::internal, ErrorKind::cancelled})
    EXPECT_EQ(exit_code(kind), 1);
}

TEST(Error, NamesErrno) { EXPECT_EQ(errno_text(ENOENT), "No such file or directory"); }

TEST(Assert, SaysWhereAndWhat) {
  try {
    MUSTER_ASSERT(1 + 1 == 3);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::internal);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("error_test.cpp"));
    EXPECT_THAT(e.what(), ::testing::HasSubstr("1 + 1 == 3 does not hold"));
  }
}

/// Test vectors of the FNV authors (Fowler, Noll, Vo).
TEST(Fnv, MatchesThePublishedVectors) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325ull);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cull);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8ull);
  EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
}

}  // namespace
}  // namespace muster
