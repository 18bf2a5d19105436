// Parameters from and to model folders: names, prefixes, missing heads, wrong shapes and types.
#include "models/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/run_model.h"
#include "storage/file.h"
#include "storage/safetensors.h"

namespace muster::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Tensors = std::map<std::string, Tensor>;  // by the file's names

Parameters load(const std::string& folder, const ModelConfig& config, LoadReport& report, const LoadOptions& options = {}) {
  return load_parameters(folder, config, options, report);
}
Tensors tensors_of(const std::string& folder) {
  const storage::SafetensorsFile file = storage::SafetensorsFile::open(folder + "/model.safetensors");
  Tensors tensors;
  for (const auto& [name, info] : file.tensors()) tensors.emplace(name, file.load_f32(name));
  return tensors;
}
void write(const std::string& folder, const Tensors& tensors) {
  std::vector<storage::NamedTensorView> views;
  for (const auto& [name, tensor] : tensors) views.push_back({name, tensor.view()});
  storage::write_safetensors(folder + "/model.safetensors", views);
}
void expect_equal(const Parameters& a, const Parameters& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    EXPECT_EQ(tensor.shape(), b.at(name).shape()) << name;
    EXPECT_THAT(b.at(name).as<float>(), testing::ElementsAreArray(tensor.as<float>())) << name;
  }
}

class Weights : public testing::Test {
 protected:
  [[nodiscard]] std::string refused(const Tensors& tensors, const LoadOptions& options = {}) const {
    write(folder_.path(), tensors);
    return error_of([&] {
      LoadReport report;
      (void)load(folder_.path(), config_, report, options);
    });
  }
  const std::string bert_ = data_folder("bert");
  ModelConfig config_ = read_config(bert_);
  Tensors tensors_ = tensors_of(bert_);
  TemporaryFolder folder_;
  LoadReport report_;
};

TEST_F(Weights, query_key_and_value_are_stacked) {
  const Parameters p = load(bert_, config_, report_);
  const Tensor& qkv = p.at("layer.1.qkv.weight");
  EXPECT_EQ(qkv.shape(), (Shape{96, 32}));
  const std::string self = "bert.encoder.layer.1.attention.self.";
  EXPECT_EQ(qkv.as<float>()[5], tensors_.at(self + "query.weight").as<float>()[5]);
  EXPECT_EQ(qkv.as<float>()[32 * 32 + 5], tensors_.at(self + "key.weight").as<float>()[5]);
  EXPECT_EQ(qkv.as<float>()[64 * 32 + 5], tensors_.at(self + "value.weight").as<float>()[5]);
  EXPECT_EQ(p.at("layer.1.qkv.bias").as<float>()[70], tensors_.at(self + "value.bias").as<float>()[6]);
}

TEST_F(Weights, shards_without_prefix_and_head_with_old_names) {
  const Parameters whole = load(bert_, config_, report_);
  Parameters shards = load(data_folder("bert_sharded"), config_, report_, {.seed = 3});
  EXPECT_THAT(report_.initialised,
              ElementsAre("bert.pooler.dense.weight", "bert.pooler.dense.bias", "classifier.weight", "classifier.bias"));
  EXPECT_THAT(report_.unused, IsEmpty());
  for (const auto bias : {"head.dense.bias", "head.out.bias"}) EXPECT_THAT(shards.at(bias).as<float>(), testing::Each(0.0f));
  double squares = 0;
  for (const float v : shards.at("head.dense.weight").as<float>()) squares += double{v} * v;
  EXPECT_NEAR(std::sqrt(squares / 1024), 0.02, 0.002);  // 1024 draws: the deviation is known to 2 %
  for (const auto* name : {"head.dense.weight", "head.dense.bias", "head.out.weight", "head.out.bias"}) shards[name] = whole.at(name);
  expect_equal(whole, shards);
}

TEST_F(Weights, a_head_depends_on_the_seed_alone) {
  const auto head = [&](uint64_t seed) {
    return load(data_folder("bert_sharded"), config_, report_, {.seed = seed}).at("head.out.weight");
  };
  EXPECT_THAT(head(3).as<float>(), testing::ElementsAreArray(head(3).as<float>()));
  EXPECT_NE(head(3).as<float>()[0], head(4).as<float>()[0]);
}

TEST_F(Weights, wrappers_of_the_name_are_taken_off) {
  Tensors wrapped;
  for (const auto& [name, tensor] : tensors_) wrapped.emplace("module._orig_mod." + name, tensor);
  wrapped.emplace("module._orig_mod.bert.embeddings.position_ids", Tensor(DType::i64, {1, 40}));
  write(folder_.path(), wrapped);
  expect_equal(load(folder_.path(), config_, report_), load(bert_, config_, report_));
  EXPECT_THAT(report_.unused, ElementsAre("module._orig_mod.bert.embeddings.position_ids"));
  EXPECT_THAT(report_.initialised, IsEmpty());
}

TEST_F(Weights, two_tensors_for_one_place_are_refused) {
  tensors_.emplace("embeddings.LayerNorm.gamma", tensors_.at("bert.embeddings.LayerNorm.weight"));
  EXPECT_THAT(refused(tensors_),
              HasSubstr("tensors bert.embeddings.LayerNorm.weight and embeddings.LayerNorm.gamma are the same parameter"));
}

TEST_F(Weights, a_missing_tensor_of_the_encoder_is_an_error) {
  tensors_.erase("bert.encoder.layer.1.attention.self.key.weight");
  EXPECT_THAT(refused(tensors_),
              testing::AllOf(HasSubstr("model.safetensors: tensor bert.encoder.layer.1.attention.self.key.weight [32, 32] is missing"),
                             HasSubstr("the weights have 40 tensors, the first is bert.embeddings.LayerNorm.bias")));
}

TEST_F(Weights, another_shape_is_an_error_with_both) {
  const std::string word = "bert.embeddings.word_embeddings.weight";
  for (const int64_t rows : {119, 121}) {
    tensors_[word] = Tensor(DType::f32, {rows, 32});
    const std::string found = "[" + std::to_string(rows) + ", 32]";
    EXPECT_THAT(refused(tensors_, {.ignore_mismatched_sizes = true}),
                HasSubstr("model.safetensors: tensor " + word + " has shape " + found + ", but config.json makes it [120, 32]"));
  }
}

TEST_F(Weights, a_head_of_another_size_is_initialised_only_when_asked) {
  set_labels(config_, {"a", "b", "c", "d"});
  EXPECT_THAT(refused(tensors_), testing::AllOf(HasSubstr("tensor classifier.weight has shape [3, 32], but config.json makes it [4, 32]"),
                                                HasSubstr("--ignore_mismatched_sizes")));
  const Parameters p = load(bert_, config_, report_, {.ignore_mismatched_sizes = true});
  EXPECT_THAT(report_.initialised, ElementsAre("classifier.weight", "classifier.bias"));
  EXPECT_EQ(p.at("head.out.weight").shape(), (Shape{4, 32}));
  EXPECT_THAT(p.at("head.dense.weight").as<float>(), testing::ElementsAreArray(tensors_.at("bert.pooler.dense.weight").as<float>()));
}

TEST_F(Weights, types_that_are_no_floats_are_refused) {
  tensors_["classifier.bias"] = Tensor(DType::i64, {3});
  EXPECT_THAT(refused(tensors_), HasSubstr("tensor classifier.bias is I64; muster reads F32, F16, BF16 and F64"));
}

TEST_F(Weights, a_folder_without_weights_says_so) {
  EXPECT_THAT(error_of([&] { (void)load(folder_.path(), config_, report_); }), HasSubstr(folder_.path()));
}

TEST_F(Weights, saved_names_are_those_of_transformers) {
  for (const char* family : {"bert", "roberta", "distilbert"}) {
    const std::string folder = data_folder(family);
    const ModelConfig config = read_config(folder);
    save_parameters(folder_.path(), config, load(folder, config, report_));
    const Tensors before = tensors_of(folder), after = tensors_of(folder_.path());
    ASSERT_EQ(before.size(), after.size());
    for (const auto& [name, tensor] : before) {
      ASSERT_TRUE(after.contains(name)) << name;
      EXPECT_EQ(after.at(name).shape(), tensor.shape()) << name;
      EXPECT_THAT(after.at(name).as<float>(), testing::ElementsAreArray(tensor.as<float>())) << name;
    }
    EXPECT_EQ(storage::SafetensorsFile::open(folder_.path() + "/model.safetensors").metadata().at("format"), "pt");
  }
}

TEST_F(Weights, saving_parameters_of_another_model_is_an_error) {
  Parameters p = load(bert_, config_, report_);
  const auto refused_to_save = [&] { return error_of([&] { save_parameters(folder_.path(), config_, p); }); };
  p["extra"] = Tensor(DType::f32, {1});
  EXPECT_THAT(refused_to_save(), HasSubstr("parameters were given, but the model has"));
  p.erase("extra");
  p["head.out.bias"] = Tensor(DType::f32, {4});
  EXPECT_THAT(refused_to_save(), HasSubstr("parameter head.out.bias is f32 [4], but config.json makes it f32 [3]"));
  p.erase("head.out.bias");
  EXPECT_THAT(refused_to_save(), HasSubstr("parameter head.out.bias is missing"));
  EXPECT_FALSE(storage::is_file(folder_.path() + "/model.safetensors"));
}

TEST_F(Weights, from_scratch) {
  const ModelConfig roberta = read_config(data_folder("roberta"));
  const Parameters p = init_parameters(roberta, 5);
  EXPECT_EQ(p.size(), parameter_table(roberta).size());
  EXPECT_THAT(p.at("layer.0.output_norm.weight").as<float>(), testing::Each(1.0f));
  EXPECT_THAT(p.at("embeddings.norm.bias").as<float>(), testing::Each(0.0f));
  for (const auto* table : {"embeddings.word.weight", "embeddings.position.weight"}) {
    EXPECT_THAT(p.at(table).as<float>().subspan(32, 32), testing::Each(0.0f)) << table;  // pad_token_id 1
    EXPECT_NE(p.at(table).as<float>()[0], 0.0f) << table;
  }
  EXPECT_NE(p.at("layer.0.up.weight").as<float>()[0], p.at("layer.1.up.weight").as<float>()[0]);
  expect_equal(p, init_parameters(roberta, 5));
}

TEST(Decay, weights_of_products_and_tables_only) {
  std::vector<std::string> without, with;
  ModelConfig c = named_config("minilm");
  c.layers = 1;
  for (const ParameterInfo& row : parameter_table(c)) (has_decay(row.name) ? with : without).push_back(row.name);
  EXPECT_THAT(with, ElementsAre("embeddings.word.weight", "embeddings.position.weight", "embeddings.type.weight", "layer.0.qkv.weight",
                                "layer.0.attention_out.weight", "layer.0.up.weight", "layer.0.down.weight", "head.dense.weight",
                                "head.out.weight"));
  EXPECT_THAT(without, ElementsAre("embeddings.norm.weight", "embeddings.norm.bias", "layer.0.qkv.bias", "layer.0.attention_out.bias",
                                   "layer.0.attention_norm.weight", "layer.0.attention_norm.bias", "layer.0.up.bias", "layer.0.down.bias",
                                   "layer.0.output_norm.weight", "layer.0.output_norm.bias", "head.dense.bias", "head.out.bias"));
}

}  // namespace
}  // namespace muster::models
