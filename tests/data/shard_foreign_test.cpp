// Shards that h5py wrote (tools/data/make_shards.py), as the scripts of others do: types, byte orders, filters, versions of the format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/pretraining_loader.h"
#include "data/shard.h"

namespace muster::data {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

std::string file(const std::string& name) { return std::string(MUSTER_TEST_DATA) + "/shards/" + name; }

template <typename T>
auto list(std::span<T> values) {
  return std::vector<std::remove_const_t<T>>(values.begin(), values.end());
}

class Foreign : public testing::TestWithParam<const char*> {};

TEST_P(Foreign, HasTheSameRows) {
  const auto rows = nlohmann::json::parse(std::ifstream(file("rows.json")));
  const std::string path = file(std::string(GetParam()) + ".hdf5");
  EXPECT_EQ(shard_rows(path), static_cast<int64_t>(rows.size()));
  const Shard shard = read_shard(path, 30522);
  ASSERT_EQ(shard.rows(), static_cast<int64_t>(rows.size()));
  EXPECT_EQ(shard.max_tokens, 16);
  EXPECT_EQ(shard.max_masks, 4);
  const bool has_next = std::string_view(GetParam()) != "no_next";
  EXPECT_EQ(has_next_labels(path), has_next);
  for (int64_t r = 0; r < shard.rows(); ++r) {
    const auto& row = rows[static_cast<size_t>(r)];
    EXPECT_EQ(list(shard.ids_of(r)), row["ids"].get<std::vector<int32_t>>());
    EXPECT_EQ(list(shard.segments_of(r)), row["segments"].get<std::vector<int32_t>>());
    EXPECT_EQ(list(shard.positions_of(r)), row["positions"].get<std::vector<int32_t>>());
    EXPECT_EQ(list(shard.labels_of(r)), row["labels"].get<std::vector<int32_t>>());
    if (has_next) {
      EXPECT_EQ(shard.next_labels.at(static_cast<size_t>(r)), row["next"].get<int32_t>());
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Variants, Foreign,
                         testing::Values("nvidia", "aws", "plain_i4", "i2", "i8", "u2", "big_endian", "v110", "earliest", "bool_mask",
                                         "no_next"),
                         [](const auto& which) { return std::string(which.param); });

class Refused : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Refused, NamesTheFileAndWhy) {
  const auto& [name, why] = GetParam();
#ifdef __SANITIZE_ADDRESS__
  const __lsan::ScopedDisabler library_leaks;  // HDF5 1.10.8: 64 bytes of a table that it cannot decode
#endif
  try {
    read_shard(file(name), 30522);
    FAIL() << name << " was read";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr(name));
    EXPECT_THAT(e.what(), HasSubstr(why));
  }
}
INSTANTIATE_TEST_SUITE_P(Bad, Refused,
                         testing::Values(std::pair{"bad_float_ids.hdf5", "input_ids"}, std::pair{"bad_missing.hdf5", "input_mask"},
                                         std::pair{"bad_rows.hdf5", "segment_ids"}, std::pair{"bad_lzf.hdf5", "compressed by lzf"},
                                         std::pair{"bad_newer.hdf5", "newer than HDF5"}));

}  // namespace
}  // namespace muster::data
