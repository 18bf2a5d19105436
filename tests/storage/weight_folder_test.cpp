// Weights in one file or in shards.
#include "storage/file.h"
#include "storage/safetensors.h"
#include "temporary.h"

namespace muster::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using WeightFolderTest = TemporaryFolder;
const std::string kSharded = std::string(MUSTER_TEST_DATA) + "/storage/sharded";

TEST_F(WeightFolderTest, ShardsAreOneMap) {
  const WeightFolder weights = WeightFolder::open(kSharded);
  EXPECT_THAT(weights.names(), ElementsAre("a.weight", "b.weight", "c.weight"));
  EXPECT_THAT(weights.load_f32("a.weight").as<float>(), ElementsAre(-0.74F, -0.37F, 0, 0.37F));
  EXPECT_EQ(weights.load_f32("c.weight").shape(), Shape{3});
  EXPECT_THAT(weights.file_of("c.weight"), testing::EndsWith("model-00002-of-00002.safetensors"));
  EXPECT_EQ(weights.find("b.weight")->dtype_name, "BF16");
  EXPECT_EQ(weights.find("d"), nullptr);
  EXPECT_FALSE(weights.contains("d"));
  EXPECT_EQ(weights.metadata().at("format"), "pt");
  EXPECT_EQ(message_of(ErrorKind::not_found, [&] { (void)weights.view("d"); }), kSharded + ": no tensor 'd' in its weights");
}

TEST_F(WeightFolderTest, OneFileGoesBeforeShards) {
  std::filesystem::copy(kSharded, path("m"));
  const Tensor one(DType::f32, {1});
  write_safetensors(path("m/model.safetensors"), {{"z", one.view()}});
  EXPECT_THAT(WeightFolder::open(path("m")).names(), ElementsAre("z"));
}

TEST_F(WeightFolderTest, ErrorsNameTheFileAndTheTensor) {
  const auto open = [&] { WeightFolder::open(root_); };
  EXPECT_THAT(message_of(ErrorKind::not_found, open),
              HasSubstr("neither model.safetensors nor model.safetensors.index.json is there; check the path"));
  write_file_atomic(path("pytorch_model.bin"), "x");
  EXPECT_THAT(message_of(ErrorKind::not_found, open), HasSubstr("convert pytorch_model.bin"));
  const auto index = [&](const std::string& text) { write_file_atomic(path("model.safetensors.index.json"), text); };
  index("{");
  EXPECT_THAT(message_of(ErrorKind::corrupt, open), HasSubstr("index.json: not valid JSON"));
  index("[]");
  EXPECT_THAT(message_of(ErrorKind::corrupt, open), HasSubstr("no object 'weight_map'"));
  index(R"({"weight_map":{}})");
  EXPECT_THAT(message_of(ErrorKind::corrupt, open), HasSubstr("'weight_map' is empty"));
  index(R"({"weight_map":{"a":3}})");
  EXPECT_THAT(message_of(ErrorKind::corrupt, open), HasSubstr("the file of tensor 'a' is not a string"));
  index(R"({"weight_map":{"a":"../secret"}})");
  EXPECT_THAT(message_of(ErrorKind::corrupt, open), HasSubstr("the file '../secret' of tensor 'a' is not a plain file name"));
  index(R"({"weight_map":{"a":"one.safetensors"}})");
  EXPECT_THAT(message_of(ErrorKind::not_found, open), HasSubstr("the shard one.safetensors is not there"));
  const Tensor one(DType::f32, {1});
  write_safetensors(path("one.safetensors"), {{"b", one.view()}});
  EXPECT_THAT(message_of(ErrorKind::corrupt, open), HasSubstr("one.safetensors: no tensor 'a', though"));
}

}  // namespace
}  // namespace muster::storage
