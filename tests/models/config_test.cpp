// config.json: what is read, what is refused and in which words, what survives a rewrite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "models/run_model.h"

namespace muster::models {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

ModelConfig parsed(const std::string& text) { return parse_config(text, "m/config.json"); }
std::string refused(const std::string& text) {
  return error_of([&] { (void)parsed(text); });
}

TEST(Config, absent_keys_have_the_defaults_of_transformers) {
  const ModelConfig bert = parsed(R"({"model_type": "bert", "classifier_dropout": null})");
  EXPECT_EQ(bert.vocab_size, 30522);
  EXPECT_EQ(bert.hidden_size, 768);
  EXPECT_EQ(bert.layers, 12);
  EXPECT_EQ(bert.heads, 12);
  EXPECT_EQ(bert.intermediate_size, 3072);
  EXPECT_EQ(bert.max_position_embeddings, 512);
  EXPECT_EQ(bert.type_vocab_size, 2);
  EXPECT_EQ(bert.layer_norm_eps, 1e-12);
  EXPECT_EQ(bert.initializer_range, 0.02);
  EXPECT_EQ(bert.position_offset(), 0);
  EXPECT_EQ(bert.max_tokens(), 512);
  EXPECT_EQ(bert.labels, (std::vector<std::string>{"LABEL_0", "LABEL_1"}));
  EXPECT_EQ(bert.problem_type, ProblemType::single_label);

  const ModelConfig roberta =
      parsed(R"({"model_type": "roberta", "max_position_embeddings": 514, "layer_norm_eps": 1e-05, "type_vocab_size": 1})");
  EXPECT_EQ(roberta.vocab_size, 50265);
  EXPECT_EQ(roberta.pad_token_id, 1);
  EXPECT_EQ(roberta.position_offset(), 2);
  EXPECT_EQ(roberta.max_tokens(), 512);
  EXPECT_EQ(roberta.layer_norm_eps, 1e-5);

  const ModelConfig distil =
      parsed(R"({"model_type": "distilbert", "dim": 64, "n_heads": 2, "hidden_dim": 96, "n_layers": 3, "dropout": 0.3})");
  EXPECT_EQ(distil.hidden_size, 64);
  EXPECT_EQ(distil.intermediate_size, 96);
  EXPECT_EQ(distil.layers, 3);
  EXPECT_EQ(distil.hidden_dropout, 0.3);
  EXPECT_EQ(distil.classifier_dropout, 0.2);
  EXPECT_FALSE(distil.has_token_types());
}

TEST(Config, the_head_has_the_hidden_dropout_unless_it_has_its_own) {
  EXPECT_EQ(parsed(R"({"model_type": "bert", "hidden_dropout_prob": 0.25})").classifier_dropout, 0.25);
  EXPECT_EQ(parsed(R"({"model_type": "bert", "hidden_dropout_prob": 0.25, "classifier_dropout": 0})").classifier_dropout, 0);
}

TEST(Config, kin_of_roberta_are_roberta) {
  for (const char* type : {"xlm-roberta", "camembert"}) {
    const ModelConfig c = parsed(std::string(R"({"model_type": ")") + type + R"(", "max_position_embeddings": 514})");
    EXPECT_EQ(c.family, Family::roberta);
    EXPECT_EQ(c.max_tokens(), 512);
    EXPECT_EQ(Json::parse(to_json(c)).at("model_type"), type);
  }
  EXPECT_EQ(architecture_of(parsed(R"({"model_type": "xlm-roberta"})")), "XLMRobertaForSequenceClassification");
}

TEST(Config, activations) {
  EXPECT_EQ(parsed(R"({"model_type": "bert", "hidden_act": "gelu_new"})").activation, Activation::gelu_tanh);
  EXPECT_EQ(parsed(R"({"model_type": "bert", "hidden_act": "gelu_pytorch_tanh"})").activation, Activation::gelu_tanh);
  EXPECT_EQ(parsed(R"({"model_type": "distilbert", "activation": "relu"})").activation, Activation::relu);
  EXPECT_THAT(refused(R"({"model_type": "bert", "hidden_act": "silu"})"),
              HasSubstr(R"(m/config.json: hidden_act "silu" is not supported)"));
}

TEST(Config, labels_stand_in_the_order_of_their_numbers) {
  std::string map;
  for (int i = 11; i >= 0; --i) map += (map.empty() ? "\"" : ", \"") + std::to_string(i) + "\": \"l" + std::to_string(i) + "\"";
  const ModelConfig c = parsed(R"({"model_type": "bert", "id2label": {)" + map + "}}");
  ASSERT_EQ(c.num_labels(), 12);
  EXPECT_EQ(c.labels[10], "l10");
  EXPECT_EQ(c.label_id("l2"), 2);
  EXPECT_EQ(c.label_id("l12"), -1);
  EXPECT_EQ(parsed(R"({"model_type": "bert", "num_labels": 3})").labels.back(), "LABEL_2");
}

TEST(Config, errors_name_the_file_and_the_key) {
  EXPECT_THAT(refused("{"), HasSubstr("m/config.json: not valid JSON"));
  EXPECT_THAT(refused("[]"), HasSubstr("m/config.json: not a JSON object"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "x": )" + std::string(100'000, '[')), HasSubstr("m/config.json: nested deeper than 64"));
  EXPECT_THAT(refused("{}"), HasSubstr("m/config.json: model_type is missing"));
  EXPECT_THAT(refused(R"({"model_type": "electra"})"), HasSubstr(R"(m/config.json: model_type "electra" is not supported)"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "position_embedding_type": "relative_key"})"),
              HasSubstr(R"(position_embedding_type "relative_key" is not)"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "is_decoder": true})"), HasSubstr("is_decoder is true"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "quantization_config": {}})"), HasSubstr("quantization_config"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "pruned_heads": {"1": [0]}})"), HasSubstr("pruned_heads"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "hidden_size": "768"})"),
              HasSubstr(R"(m/config.json: hidden_size must be an integer, but is "768")"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "hidden_size": 0})"), HasSubstr("hidden_size must be between 1 and"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "vocab_size": 18446744073709551615})"), HasSubstr("vocab_size must be between 1 and"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "num_attention_heads": 7})"),
              HasSubstr("num_attention_heads 7 does not divide hidden_size 768"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "hidden_dropout_prob": 1})"),
              HasSubstr("hidden_dropout_prob must be between 0 and 0.99, but is 1"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "pad_token_id": 30522})"), HasSubstr("pad_token_id must be between"));
  EXPECT_THAT(refused(R"({"model_type": "roberta", "max_position_embeddings": 2})"),
              HasSubstr("max_position_embeddings 2 leaves no position"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "id2label": {"0": "a", "2": "b"}})"),
              HasSubstr("id2label has 2 entries, but none for label 1"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "id2label": {"0": "a", "1": "a"}})"), HasSubstr(R"(id2label has label "a" twice)"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "id2label": {"0": 1}})"), HasSubstr("id2label must map to strings"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "id2label": {}})"), HasSubstr("id2label must map 1 to"));
  EXPECT_THAT(refused(R"({"model_type": "bert", "problem_type": "ranking"})"), HasSubstr(R"(problem_type "ranking" is unknown)"));
  EXPECT_THAT(error_of([] { (void)read_config("no/such/folder"); }), HasSubstr("no/such/folder/config.json"));
}

TEST(Config, what_is_not_single_label_classification_runs_but_has_no_loss) {
  const ModelConfig several = parsed(R"({"model_type": "bert", "num_hidden_layers": 1, "problem_type": "multi_label_classification"})");
  const ModelConfig one = parsed(R"({"model_type": "bert", "num_hidden_layers": 1, "num_labels": 1})");
  EXPECT_EQ(several.problem_type, ProblemType::multi_label);
  EXPECT_EQ(one.problem_type, ProblemType::regression);
  ClassifierOptions options;
  EXPECT_EQ(build_classifier(several, options).outputs.size(), 1u);
  options.training = true;
  EXPECT_THAT(error_of([&] { (void)build_classifier(several, options); }),
              HasSubstr("problem_type multi_label_classification has no loss"));
  EXPECT_THAT(error_of([&] { (void)build_classifier(one, options); }), HasSubstr("problem_type regression has no loss"));
}

TEST(Config, rewriting_keeps_unknown_keys_and_their_order) {
  ModelConfig c = parsed(R"({"zebra": [1, {"a": null}], "model_type": "bert", "architectures": ["BertForMaskedLM"], "dtype": "bfloat16",
                             "num_labels": 2, "layer_norm_eps": 1e-12, "transformers_version": "4.8.2"})");
  set_labels(c, {"négative", "neutral", "positive"});
  const std::string text = to_json(c);
  EXPECT_LT(text.find("zebra"), text.find("model_type"));
  EXPECT_LT(text.find("model_type"), text.find("transformers_version"));
  const Json json = Json::parse(text);
  EXPECT_EQ(json.at("zebra"), Json::parse(R"([1, {"a": null}])"));
  EXPECT_EQ(json.at("architectures"), Json::parse(R"(["BertForSequenceClassification"])"));
  EXPECT_EQ(json.at("id2label"), Json::parse(R"({"0": "négative", "1": "neutral", "2": "positive"})"));
  EXPECT_EQ(json.at("label2id"), Json::parse(R"({"négative": 0, "neutral": 1, "positive": 2})"));
  EXPECT_EQ(json.at("num_labels"), 3);
  EXPECT_EQ(json.at("dtype"), "float32");
  EXPECT_FALSE(json.contains("torch_dtype"));
  EXPECT_EQ(json.at("layer_norm_eps"), 1e-12);
  EXPECT_EQ(json.at("problem_type"), "single_label_classification");
  EXPECT_EQ(to_json(parsed(text)), text);
}

TEST(Config, set_labels_refuses_what_is_no_classification) {
  ModelConfig c;
  EXPECT_THAT(error_of([&] { set_labels(c, {"a"}); }), HasSubstr("at least two labels"));
  EXPECT_THAT(error_of([&] { set_labels(c, {"a", ""}); }), HasSubstr("label 1 has an empty name"));
  EXPECT_THAT(error_of([&] { set_labels(c, {"a", "b", "a"}); }), HasSubstr("label \"a\" is given twice"));
  set_labels(c, {"a", "\xff"});
  EXPECT_THAT(error_of([&] { (void)to_json(c); }), HasSubstr("cannot write config.json"));
}

TEST(Config, a_config_made_here_reads_back_the_same) {
  for (const char* name : {"tiny", "minilm", "bert-base", "roberta-base", "distilbert-base"}) {
    const ModelConfig made = named_config(name);
    const ModelConfig read = parsed(to_json(made));
    EXPECT_EQ(read.model_type, made.model_type) << name;
    EXPECT_EQ(read.vocab_size, made.vocab_size) << name;
    EXPECT_EQ(read.hidden_size, made.hidden_size) << name;
    EXPECT_EQ(read.layers, made.layers) << name;
    EXPECT_EQ(read.heads, made.heads) << name;
    EXPECT_EQ(read.intermediate_size, made.intermediate_size) << name;
    EXPECT_EQ(read.max_tokens(), 512) << name;
    EXPECT_EQ(read.max_position_embeddings, made.max_position_embeddings) << name;
    EXPECT_EQ(read.type_vocab_size, made.type_vocab_size) << name;
    EXPECT_EQ(read.pad_token_id, made.pad_token_id) << name;
    EXPECT_EQ(read.classifier_dropout, made.classifier_dropout) << name;
    EXPECT_EQ(read.layer_norm_eps, made.layer_norm_eps) << name;
    EXPECT_EQ(read.labels, made.labels) << name;
  }
  EXPECT_THAT(error_of([] { (void)named_config("gpt2"); }), HasSubstr("there are tiny, minilm"));
}

}  // namespace
}  // namespace muster::models
