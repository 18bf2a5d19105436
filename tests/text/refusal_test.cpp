// What is not supported is refused by name, what is broken by file and place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "text/folders.h"

namespace muster::text {
namespace {

using golden::base_json;
using golden::Folder;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

struct Case {
  std::string base;
  json patch;
  ErrorKind kind;
  std::vector<std::string> words;
};

void expect_refused(const Folder& folder, ErrorKind kind, const std::vector<std::string>& words) {
  try {
    (void)folder.load();
    ADD_FAILURE() << "loaded, expected an error with: " << testing::PrintToString(words);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string& word : words) EXPECT_THAT(error.what(), HasSubstr(word));
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

void expect_all(const std::vector<Case>& cases) {
  for (const Case& entry : cases) {
    SCOPED_TRACE(entry.patch.dump());
    json document = base_json(entry.base);
    for (const auto& [key, value] : entry.patch.items()) {
      if (key == "model") {
        document[key].merge_patch(value);
      } else {
        document[key] = value;
      }
    }
    const Folder folder;
    expect_refused(folder.write("tokenizer.json", document.dump()), entry.kind, entry.words);
  }
}

json of_type(const char* type) { return {{"type", type}}; }

TEST(Refusal, ComponentsByName) {
  std::vector<Case> cases;
  for (const char* type : {"NFC", "NFKC", "Nmt", "Precompiled", "Strip", "Replace", "Prepend", "ByteLevel"}) {
    cases.push_back({"wordpiece", {{"normalizer", of_type(type)}}, ErrorKind::unsupported, {"normalizer", "'" + std::string(type) + "'"}});
    cases.push_back({"bpe",
                     {{"normalizer", {{"type", "Sequence"}, {"normalizers", {of_type("Lowercase"), of_type(type)}}}}},
                     ErrorKind::unsupported,
                     {"normalizers[1]", "'" + std::string(type) + "'"}});
  }
  for (const char* type : {"Metaspace", "Split", "Punctuation", "Digits", "Whitespace", "CharDelimiterSplit", "UnicodeScripts"}) {
    cases.push_back(
        {"wordpiece", {{"pre_tokenizer", of_type(type)}}, ErrorKind::unsupported, {"pre_tokenizer", "'" + std::string(type) + "'"}});
  }
  cases.push_back({"bpe",
                   {{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {of_type("WhitespaceSplit"), of_type("ByteLevel")}}}}},
                   ErrorKind::unsupported,
                   {"pretokenizers[1]", "ByteLevel after another"}});
  for (const char* type : {"Unigram", "WordLevel"}) {
    cases.push_back({"wordpiece", {{"model", of_type(type)}}, ErrorKind::unsupported, {"model", "'" + std::string(type) + "'"}});
  }
  cases.push_back({"wordpiece", {{"post_processor", of_type("Other")}}, ErrorKind::unsupported, {"post_processor", "'Other'"}});
  cases.push_back({"bpe", {{"model", {{"dropout", 0.1}}}}, ErrorKind::unsupported, {"BPE dropout"}});
  cases.push_back({"bpe", {{"model", {{"byte_fallback", true}}}}, ErrorKind::unsupported, {"byte_fallback"}});
  cases.push_back({"bpe", {{"model", {{"continuing_subword_prefix", "##"}}}}, ErrorKind::unsupported, {"continuing_subword_prefix"}});
  cases.push_back({"bpe", {{"model", {{"end_of_word_suffix", "</w>"}}}}, ErrorKind::unsupported, {"end_of_word_suffix"}});
  cases.push_back({"bpe", {{"pre_tokenizer", nullptr}}, ErrorKind::unsupported, {"BPE without the pre-tokenizer ByteLevel"}});
  cases.push_back({"wordpiece", {{"pre_tokenizer", of_type("ByteLevel")}}, ErrorKind::unsupported, {"WordPiece behind ByteLevel"}});
  cases.push_back(
      {"wordpiece", {{"truncation", {{"direction", "Left"}, {"max_length", 5}}}}, ErrorKind::unsupported, {"truncation from the left"}});
  expect_all(cases);
}

TEST(Refusal, BrokenFilesByPlace) {
  const json token = {{"id", 7}, {"content", "x y z"}};
  expect_all({
      {"wordpiece", {{"normalizer", 3}}, ErrorKind::corrupt, {"normalizer", "'type' is missing"}},
      {"wordpiece",
       {{"normalizer", {{"type", "BertNormalizer"}, {"lowercase", "yes"}}}},
       ErrorKind::corrupt,
       {"normalizer.lowercase", "true or false"}},
      {"wordpiece", {{"model", nullptr}}, ErrorKind::corrupt, {"model", "must be an object"}},
      {"wordpiece", {{"model", {{"vocab", nullptr}}}}, ErrorKind::corrupt, {"'vocab' is missing"}},
      {"wordpiece", {{"model", {{"vocab", {{"a", "b"}}}}}}, ErrorKind::corrupt, {"model.vocab", "'a' must be an integer"}},
      {"wordpiece", {{"model", {{"vocab", {{"a", -4}}}}}}, ErrorKind::corrupt, {"'a' has the id -4"}},
      {"wordpiece", {{"model", {{"vocab", {{"a", 4000000000}}}}}}, ErrorKind::corrupt, {"'a' has the id"}},
      {"wordpiece", {{"model", {{"vocab", {{"a", 5}}}}}}, ErrorKind::corrupt, {"the id 5 has two tokens"}},
      {"wordpiece", {{"model", {{"unk_token", "<nothing>"}}}}, ErrorKind::corrupt, {"'<nothing>'", "not in its vocabulary"}},
      {"bpe", {{"model", {{"merges", {{"a", "b", "c"}}}}}}, ErrorKind::corrupt, {"model.merges[0]"}},
      {"bpe", {{"model", {{"merges", {"a b c"}}}}}, ErrorKind::corrupt, {"model.merges[0]"}},
      {"bpe", {{"model", {{"merges", {"e nothing"}}}}}, ErrorKind::corrupt, {"merge 0 ('e' 'nothing')", "'nothing'"}},
      {"bpe", {{"model", {{"unk_token", "nothing"}}}}, ErrorKind::corrupt, {"unknown token 'nothing'"}},
      {"wordpiece", {{"added_tokens", {token}}}, ErrorKind::corrupt, {"the id 7 has two tokens"}},
      {"wordpiece", {{"added_tokens", {{{"id", 9000}}}}}, ErrorKind::corrupt, {"added_tokens[0]", "'content' is missing"}},
      {"wordpiece",
       {{"added_tokens", {{{"id", 9000}, {"content", "q q"}}, {{"id", 9000}, {"content", "q q"}}}}},
       ErrorKind::corrupt,
       {"added_tokens[1]", "twice"}},
      {"wordpiece",
       {{"added_tokens", {{{"id", 9000}, {"content", "\x01"}}}}},
       ErrorKind::unsupported,
       {"id 9000", "empty once normalized"}},
      {"wordpiece", {{"post_processor", {{"type", "BertProcessing"}, {"sep", {"[SEP]", 3}}}}}, ErrorKind::corrupt, {"'cls' is missing"}},
      {"wordpiece",
       {{"post_processor", {{"type", "BertProcessing"}, {"sep", {"[SEP]", 99999}}, {"cls", {"[CLS]", 2}}}}},
       ErrorKind::corrupt,
       {"post_processor.sep", "99999"}},
      {"wordpiece",
       {{"post_processor",
         {{"type", "TemplateProcessing"},
          {"single", {{{"Sequence", {{"id", "B"}, {"type_id", 0}}}}}},
          {"pair", json::array()},
          {"special_tokens", json::object()}}}},
       ErrorKind::corrupt,
       {"single[0].Sequence", "no text 'B'"}},
      {"wordpiece",
       {{"post_processor",
         {{"type", "TemplateProcessing"},
          {"single", {{{"SpecialToken", {{"id", "[CLS]"}, {"type_id", 0}}}}}},
          {"pair", json::array()},
          {"special_tokens", json::object()}}}},
       ErrorKind::corrupt,
       {"special_tokens", "'[CLS]' is missing"}},
  });
}

TEST(Refusal, DeepSequences) {
  json deep = of_type("Lowercase");
  for (int i = 0; i < 200; ++i) deep = {{"type", "Sequence"}, {"normalizers", {deep}}};
  expect_all({{"wordpiece", {{"normalizer", deep}}, ErrorKind::unsupported, {"Sequence this deep"}}});
}

TEST(Refusal, Folders) {
  const Folder folder;
  expect_refused(folder, ErrorKind::not_found, {folder.path().string(), "no tokenizer.json", "vocab.txt"});
  expect_refused(folder.write("vocab.json", "{}"), ErrorKind::not_found, {"merges.txt"});
  expect_refused(folder.write("tokenizer.json", "{\"a\": "), ErrorKind::corrupt, {"tokenizer.json", "not JSON"});
  expect_refused(folder.write("tokenizer.json", "[]"), ErrorKind::corrupt, {"must be an object"});
  folder.write("tokenizer.json", base_json("wordpiece").dump());
  expect_refused(folder.write("tokenizer_config.json", "[1]"), ErrorKind::corrupt, {"tokenizer_config.json", "must be an object"});
  expect_refused(folder.write("tokenizer_config.json", R"({"truncation_side": "left"})"), ErrorKind::unsupported,
                 {"truncation_side 'left'"});
}

TEST(Refusal, FoldersWithoutTokenizerJson) {
  const Folder words;
  expect_refused(words.write("vocab.txt", ""), ErrorKind::corrupt, {"'[UNK]'"});
  expect_refused(words.write("vocab.txt", "[UNK]\na\na\n"), ErrorKind::corrupt, {"vocab.txt:3", "'a' is already on line 2"});
  expect_refused(words.write("vocab.txt", "[UNK]\n[SEP]\na\n"), ErrorKind::corrupt, {"'[CLS]' is not in the vocabulary"});
  const Folder bytes;
  bytes.write("vocab.json", R"({"<s>": 0, "</s>": 1, "a": 2})");
  expect_refused(bytes.write("merges.txt", "#version: 0.2\na\n"), ErrorKind::corrupt, {"merges.txt:2", "two tokens"});
  expect_refused(bytes.write("merges.txt", "a a\n"), ErrorKind::corrupt, {"'aa'", "not in the vocabulary"});
  expect_refused(bytes.write("merges.txt", "").write("vocab.json", R"({"a": 2})"), ErrorKind::corrupt, {"'<s>' is not in the vocabulary"});
}

}  // namespace
}  // namespace muster::text
