// What the Tokenizer promises beside equal ids: folders without tokenizer.json, special tokens, lengths, decoding, threads.
#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "text/folders.h"
#include "text/golden.h"

namespace muster::text {
namespace {

using golden::base_json;
using golden::Folder;
using golden::load_base;
using testing::ElementsAre;
using testing::HasSubstr;

std::string vocab_txt() {
  const auto vocab = base_json("wordpiece")["model"]["vocab"];
  std::vector<std::string> tokens(vocab.size());
  for (const auto& [token, id] : vocab.items()) tokens[id.get<size_t>()] = token;
  std::string out;
  for (const std::string& token : tokens) out += token + "\n";
  return out;
}

std::string merges_txt() {
  std::string out = "#version: 0.2\n";
  const nlohmann::json json = base_json("bpe");
  for (const auto& merge : json["model"]["merges"]) out += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  return out;
}

void expect_goldens(const Tokenizer& tokenizer, const std::string& name) {
  const auto texts = golden::read_texts(golden::kData / "lines.txt");
  const auto lines = golden::read_lines(golden::kData / (name + ".golden"));
  size_t different = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string difference = golden::difference(tokenizer.encode(texts[i]), texts[i], {}, false, lines[i]);
    if (!difference.empty() && ++different <= 5) ADD_FAILURE() << "line " << i + 1 << ": " << difference;
  }
  EXPECT_EQ(different, 0U);
}

TEST(TokenizerFolder, VocabTxtIsTheBertPipeline) {
  const Folder folder;
  folder.write("vocab.txt", vocab_txt());
  expect_goldens(folder.load(), "wordpiece");
  folder.write("tokenizer_config.json", R"({"do_lower_case": false, "strip_accents": null, "tokenize_chinese_chars": true})");
  expect_goldens(folder.load(), "wordpiece_cased_null");
  folder.write("tokenizer_config.json", R"({"do_lower_case": true, "tokenize_chinese_chars": false})");
  expect_goldens(folder.load(), "wordpiece_no_chinese");
  folder.write("tokenizer_config.json", R"({"do_lower_case": true, "strip_accents": false})");
  expect_goldens(folder.load(), "wordpiece_lower_accents");
}

TEST(TokenizerFolder, VocabTxtTakesWindowsLineEnds) {
  const Folder folder;
  folder.write("vocab.txt", "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nhello\r\n");
  EXPECT_THAT(folder.load().encode("Hello").ids, ElementsAre(2, 4, 3));
}

TEST(TokenizerFolder, VocabJsonAndMergesAreTheRobertaPipeline) {
  const Folder folder;
  folder.write("vocab.json", base_json("bpe")["model"]["vocab"].dump()).write("merges.txt", merges_txt());
  expect_goldens(folder.load(), "bpe");
  folder.write("tokenizer_config.json", R"({"add_prefix_space": true})");
  expect_goldens(folder.load(), "bpe_prefix");
}

TEST(TokenizerFolder, MergesOfOldFilesAreStrings) {
  nlohmann::json json = base_json("bpe");
  for (auto& merge : json["model"]["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  expect_goldens(golden::load_json(json), "bpe");
}

TEST(TokenizerFolder, AddedTokensJson) {
  const Folder folder;
  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\n").write("added_tokens.json", R"({"<user>": 5})");
  const Tokenizer tokenizer = folder.load();
  EXPECT_THAT(tokenizer.encode("<user>hello").ids, ElementsAre(2, 5, 4, 3));
  EXPECT_EQ(tokenizer.vocab_size(), 6);
}

TEST(TokenizerFolder, FilesAreThoseToCopy) {
  const Folder folder;
  folder.write("tokenizer.json", base_json("wordpiece").dump()).write("vocab.txt", vocab_txt()).write("config.json", "{}");
  folder.write("special_tokens_map.json", "{}").write("tokenizer_config.json", "{}");
  std::vector<std::string> names;
  for (const auto& file : folder.load().files()) names.push_back(file.filename().string());
  EXPECT_THAT(names, ElementsAre("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"));
}

TEST(TokenizerFolder, NamesOfSpecialTokens) {
  const Tokenizer bert = load_base("wordpiece");
  EXPECT_EQ(bert.pad_id(), 0);
  EXPECT_EQ(bert.unk_id(), 1);
  EXPECT_EQ(bert.cls_id(), 2);
  EXPECT_EQ(bert.sep_id(), 3);
  EXPECT_EQ(bert.mask_id(), 4);
  const Tokenizer roberta = load_base("bpe");
  EXPECT_EQ(roberta.cls_id(), 0);
  EXPECT_EQ(roberta.pad_id(), 1);
  EXPECT_EQ(roberta.sep_id(), 2);
  EXPECT_EQ(roberta.unk_id(), 3);
  EXPECT_EQ(roberta.mask_id(), 4);
  const Folder folder;
  folder.write("tokenizer.json", base_json("wordpiece").dump());
  folder.write("special_tokens_map.json", R"({"pad_token": "the", "mask_token": {"content": "of", "lstrip": false}})");
  folder.write("tokenizer_config.json", R"({"mask_token": "and"})");
  EXPECT_EQ(folder.load().pad_id(), bert.token_to_id("the"));
  EXPECT_EQ(folder.load().mask_id(), bert.token_to_id("and"));
}

TEST(TokenizerFolder, ModelMaxLength) {
  const Folder folder;
  folder.write("tokenizer.json", base_json("wordpiece", {{"truncation", {{"max_length", 128}, {"strategy", "LongestFirst"}, {"stride", 0}}},
                                                         {"padding", {{"strategy", {{"Fixed", 128}}}}}})
                                     .dump());
  EXPECT_EQ(folder.load().model_max_length(), std::nullopt);
  EXPECT_EQ(folder.load().truncation_length(), 128);
  folder.write("tokenizer_config.json", R"({"model_max_length": 512})");
  EXPECT_EQ(folder.load().model_max_length(), 512);
  folder.write("tokenizer_config.json", R"({"model_max_length": 1000000000000000019884624838656})");
  EXPECT_EQ(folder.load().model_max_length(), std::nullopt);
  // Neither truncation nor padding of the file is applied by itself.
  EXPECT_EQ(folder.load().encode("a").ids.size(), 3U);
  EXPECT_EQ(folder.load().encode(std::string(1000, '!')).ids.size(), 1002U);
}

TEST(Tokenizer, IdsAndTokens) {
  const Tokenizer tokenizer = load_base("wordpiece");
  EXPECT_EQ(tokenizer.id_to_token(2), "[CLS]");
  EXPECT_EQ(tokenizer.id_to_token(-1), "");
  EXPECT_EQ(tokenizer.id_to_token(static_cast<int32_t>(tokenizer.vocab_size())), "");
  EXPECT_EQ(tokenizer.token_to_id("no such token"), std::nullopt);
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) ASSERT_EQ(tokenizer.token_to_id(tokenizer.id_to_token(id)), id);
}

TEST(Tokenizer, LengthKeepsSpecialTokens) {
  const Tokenizer tokenizer = load_base("wordpiece");
  const Encoding whole = tokenizer.encode("the of and to in is you");
  ASSERT_EQ(whole.ids.size(), 9U);
  const Encoding cut = tokenizer.encode("the of and to in is you", {true, 5});
  EXPECT_THAT(cut.ids, ElementsAre(2, whole.ids[1], whole.ids[2], whole.ids[3], 3));
  EXPECT_EQ(tokenizer.encode("the of and to in is you", {false, 5}).ids.size(), 5U);
  EXPECT_THAT(tokenizer.encode("the of", {true, 2}).ids, ElementsAre(2, 3));
  std::vector<int32_t> ids{7};
  EXPECT_EQ(tokenizer.encode_ids("the of and", 3, ids), 3U);
  EXPECT_THAT(ids, ElementsAre(7, 2, whole.ids[1], 3));
  EXPECT_EQ(tokenizer.special_tokens_added(), 2);
  EXPECT_EQ(tokenizer.special_tokens_added(true), 3);
  EXPECT_EQ(load_base("bpe").special_tokens_added(true), 4);
}

TEST(Tokenizer, LengthWithoutRoomIsAnError) {
  const Tokenizer tokenizer = load_base("wordpiece");
  std::vector<int32_t> ids;
  EXPECT_THROW(tokenizer.encode("a", {true, 1}), Error);
  EXPECT_THROW(tokenizer.encode("a", {true, -1}), Error);
  EXPECT_THROW(tokenizer.encode_pair("a", "b", {true, 2}), Error);
  EXPECT_THROW(tokenizer.encode_ids("a", 1, ids), Error);
  EXPECT_TRUE(ids.empty());
  try {
    (void)tokenizer.encode("a", {true, 1});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("max_length 1 leaves no room for the 2 special tokens"));
  }
}

TEST(Tokenizer, PairsHaveTypesOfTheModel) {
  const Encoding bert = load_base("wordpiece").encode_pair("the of", "and");
  EXPECT_THAT(bert.type_ids, ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(bert.special_tokens_mask, ElementsAre(1, 0, 0, 1, 0, 1));
  EXPECT_THAT(bert.text_index, ElementsAre(0, 0, 0, 0, 1, 0));
  const Encoding roberta = load_base("bpe").encode_pair("the", "and");
  EXPECT_THAT(roberta.type_ids, testing::Each(0));
  EXPECT_THAT(roberta.special_tokens_mask, ElementsAre(1, 0, 1, 1, 0, 1));
}

TEST(Tokenizer, OffsetsAreBytesOfTheTextAsGiven) {
  const Tokenizer tokenizer = load_base("wordpiece");
  const std::string text = "\xC3\xA9t\xC3\xA9 \xED\xA0\x80the\xE2\x82 of";  // a lone surrogate, then a sequence that stops short
  const Encoding encoding = tokenizer.encode(text, {false, 0});
  std::vector<std::string> parts;
  for (const Offsets& range : encoding.offsets) parts.push_back(text.substr(range.first, range.second - range.first));
  EXPECT_EQ(parts.back(), "of");
  EXPECT_THAT(parts, testing::Contains("the"));
  const auto chars = char_offsets(text, encoding.offsets);
  EXPECT_EQ(chars.back(), Offsets(12, 14));  // e t e, space, three U+FFFD, t h e, one U+FFFD, space
}

TEST(Tokenizer, CharOffsetsRefuseWhatIsOutside) {
  const std::vector<Offsets> outside{{0, 4}};
  EXPECT_THROW(char_offsets("abc", outside), Error);
  const std::vector<Offsets> backwards{{2, 1}};
  EXPECT_THROW(char_offsets("abc", backwards), Error);
}

TEST(Tokenizer, Decode) {
  const Tokenizer bert = load_base("wordpiece");
  EXPECT_EQ(bert.decode(bert.encode("The unhappiness of running").ids), "the unhappiness of running");
  EXPECT_EQ(bert.decode(bert.encode("the").ids, false), "[CLS] the [SEP]");
  const Tokenizer roberta = load_base("bpe");
  for (const std::string text : {"Hello World", " caf\xC3\xA9 \xF0\x9F\x98\x80  x\n", "\xE4\xBD\xA0\xE5\xA5\xBD"}) {
    EXPECT_EQ(roberta.decode(roberta.encode(text).ids), text);
  }
  EXPECT_EQ(roberta.decode(roberta.encode("a").ids, false), "<s>a</s>");
  const auto emoji = roberta.encode("\xF0\x9F\xA7\xBF", {false, 0}).ids;
  EXPECT_EQ(roberta.decode(std::vector<int32_t>{*roberta.token_to_id("\xC3\xB0")}), "\xEF\xBF\xBD") << "half a character";
  EXPECT_THROW((void)bert.decode(std::vector<int32_t>{1000000}), Error);
  EXPECT_THROW((void)bert.decode(std::vector<int32_t>{-1}), Error);
}

TEST(Tokenizer, ManyThreadsGetTheSameIds) {
  const auto texts = golden::read_texts(golden::kData / "lines.txt");
  for (const char* base : {"wordpiece", "bpe"}) {
    const Tokenizer tokenizer = load_base(base);
    std::vector<std::vector<int32_t>> expected;
    for (const std::string& text : texts) expected.push_back(tokenizer.encode(text).ids);
    std::vector<size_t> wrong(6, 0);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&, t, copy = tokenizer] {
        std::vector<int32_t> ids;
        for (size_t i = t; i < texts.size(); i += 2) {
          ids.clear();
          copy.encode_ids(texts[i], 0, ids);
          wrong[t] += ids != expected[i] ? 1 : 0;
          if (i % 16 == 0) wrong[t] += copy.encode(texts[i]).ids != expected[i] ? 1 : 0;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(wrong, testing::Each(0U));
  }
}

TEST(Tokenizer, LongTextsTakeLinearTime) {
  std::string word;
  for (size_t i = 0; i < 200000; ++i) word += "aeiorst"[i * i % 97 % 7];
  EXPECT_GT(load_base("bpe").encode(word).ids.size(), 1000U);
  EXPECT_EQ(load_base("wordpiece").encode(word).ids.size(), 3U);
  const Encoding pieces = load_base("wordpiece", {{"model", {{"max_input_chars_per_word", 1000000}}}}).encode(word, {false, 0});
  EXPECT_GT(pieces.ids.size(), 10000U);
  EXPECT_EQ(pieces.offsets.back().second, word.size());
}

}  // namespace
}  // namespace muster::text
