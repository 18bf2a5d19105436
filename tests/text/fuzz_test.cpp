// Random bytes through every tokenizer, and broken tokenizer.json files: never a crash, never a wrong offset, only Error is thrown.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "text/folders.h"
#include "text/golden.h"
#include "text/unicode.h"

namespace muster::text {
namespace {

using golden::Folder;
using nlohmann::json;
using Rng = std::mt19937;

size_t below(Rng& rng, size_t limit) { return limit == 0 ? 0 : rng() % limit; }

std::string random_bytes(Rng& rng, const std::vector<std::string>& texts) {
  std::string out;
  const size_t pieces = below(rng, 6);
  for (size_t i = 0; i < pieces; ++i) {
    switch (below(rng, 4)) {
      case 0:
        for (size_t k = below(rng, 40); k > 0; --k) out.push_back(static_cast<char>(below(rng, 256)));
        break;
      case 1:
        for (size_t k = below(rng, 20); k > 0; --k) append_utf8(out, static_cast<char32_t>(below(rng, 0x110000)));
        break;
      case 2: out += texts[below(rng, texts.size())]; break;
      default: {  // a text cut where it must not be
        const std::string& text = texts[below(rng, texts.size())];
        const size_t begin = below(rng, text.size());
        out += text.substr(begin, below(rng, text.size()));
      }
    }
  }
  return out;
}

/// `trimmed`: white space is trimmed from offsets. Then a token with half a character and the space that ByteLevel put before it loses
/// that character, in the Rust library too, and starts behind the token with the other half; without trimming offsets never go back.
void check(const Tokenizer& tokenizer, const Encoding& encoding, std::string_view first, std::string_view second, bool trimmed) {
  const size_t count = encoding.ids.size();
  ASSERT_TRUE(encoding.type_ids.size() == count && encoding.tokens.size() == count && encoding.offsets.size() == count &&
              encoding.special_tokens_mask.size() == count && encoding.text_index.size() == count);
  uint32_t begin[2] = {0, 0};
  uint32_t end[2] = {0, 0};
  for (size_t i = 0; i < count; ++i) {
    ASSERT_GE(encoding.ids[i], 0);
    ASSERT_LT(encoding.ids[i], tokenizer.vocab_size());
    ASSERT_FALSE(tokenizer.id_to_token(encoding.ids[i]).empty());
    if (encoding.special_tokens_mask[i] != 0) continue;
    const size_t side = encoding.text_index[i];
    const Offsets offsets = encoding.offsets[i];
    ASSERT_LE(offsets.first, offsets.second);
    ASSERT_LE(offsets.second, (side == 0 ? first : second).size());
    ASSERT_TRUE(trimmed || offsets.first >= begin[side]) << offsets.first << " after " << begin[side];
    ASSERT_TRUE(trimmed || offsets.second >= end[side]) << offsets.second << " after " << end[side];
    begin[side] = offsets.first;
    end[side] = offsets.second;
  }
}

TEST(Fuzz, RandomBytes) {
  const auto texts = golden::read_texts(golden::kData / "lines.txt");
  uint32_t seed = 1;
  for (const auto& entry : golden::read_json(golden::kData / "variants.json")) {
    SCOPED_TRACE(entry["name"].get<std::string>());
    const Tokenizer tokenizer = golden::load_base(entry["base"].get<std::string>(), entry["patch"]);
    const bool trimmed = entry["base"] == "bpe" && entry["name"] != "bpe_no_trim" && entry["name"] != "bpe_template";
    Rng rng(seed++);
    std::vector<int32_t> ids;
    for (int round = 0; round < 400 && !testing::Test::HasFailure(); ++round) {
      SCOPED_TRACE(round);
      const std::string first = random_bytes(rng, texts);
      const std::string second = random_bytes(rng, texts);
      const int length = below(rng, 2) == 0 ? 0 : 6 + static_cast<int>(below(rng, 30));
      const Encoding encoding = tokenizer.encode(first, {true, length});
      check(tokenizer, encoding, first, {}, trimmed);
      ids.clear();
      tokenizer.encode_ids(first, length, ids);
      ASSERT_EQ(ids, encoding.ids);
      ASSERT_TRUE(length == 0 || ids.size() <= static_cast<size_t>(length));
      check(tokenizer, tokenizer.encode_pair(first, second, {below(rng, 2) == 0, length}), first, second, trimmed);
      (void)tokenizer.decode(ids, below(rng, 2) == 0);
      (void)char_offsets(first, tokenizer.encode(first, {false, 0}).offsets);
    }
  }
}

/// Another value for a random place of a document.
void mutate(json& document, Rng& rng) {
  json* place = &document;
  while (place->is_structured() && !place->empty() && below(rng, 6) != 0) {
    auto child = place->begin();
    std::advance(child, static_cast<std::ptrdiff_t>(below(rng, std::min<size_t>(place->size(), 50))));
    place = &child.value();
  }
  static const std::vector<json> kValues = {nullptr,
                                            true,
                                            false,
                                            0,
                                            -1,
                                            1,
                                            2,
                                            3,
                                            300,
                                            1e30,
                                            4000000000U,
                                            18446744073709551615U,
                                            "",
                                            "[UNK]",
                                            "Sequence",
                                            "ByteLevel",
                                            "BPE",
                                            "WordPiece",
                                            "BertNormalizer",
                                            json::array(),
                                            json::object(),
                                            json::array({1, "x"}),
                                            {{"type", "NFD"}},
                                            {{"type", "BertPreTokenizer"}},
                                            "\xC3\xA9"};
  switch (below(rng, 5)) {
    case 0:
      if (place->is_object() && !place->empty()) {
        auto child = place->begin();
        std::advance(child, static_cast<std::ptrdiff_t>(below(rng, place->size())));
        place->erase(child);
        break;
      }
      [[fallthrough]];
    case 1:
      if (place->is_array() && !place->empty()) {
        place->push_back((*place)[below(rng, place->size())]);
        break;
      }
      [[fallthrough]];
    default: *place = kValues[below(rng, kValues.size())];
  }
}

/// A small document with every component, so that mutations hit structure more often than vocabulary.
json small(const std::string& base, const json& patch) {
  json document = golden::base_json(base, patch);
  json& model = document["model"];
  if (base == "wordpiece") {
    json vocab = json::object();
    for (const auto& [token, id] : model["vocab"].items()) {
      if (id.get<int>() < 200) vocab[token] = id;
    }
    model["vocab"] = vocab;
    return document;
  }
  json vocab = json::object();
  for (const auto& [token, id] : model["vocab"].items()) {
    if (id.get<int>() < 300) vocab[token] = id;
  }
  json merges = json::array();
  for (const auto& merge : model["merges"]) {
    const std::string left = merge[0].get<std::string>();
    const std::string right = merge[1].get<std::string>();
    if (vocab.contains(left) && vocab.contains(right) && vocab.contains(left + right)) merges.push_back(merge);
  }
  model["vocab"] = vocab;
  model["merges"] = merges;
  return document;
}

void load_and_use(const Folder& folder, size_t& loaded, size_t& refused) {
  try {
    const Tokenizer tokenizer = folder.load();
    ++loaded;
    std::vector<int32_t> ids;
    for (const std::string_view text :
         {"", " Hello  [MASK] <left> caf\xC3\xA9, \xF0\x9F\x98\x80\xFF don't", "\xE4\xBD\xA0\xE5\xA5\xBD x"}) {
      check(tokenizer, tokenizer.encode(text), text, {}, true);
      check(tokenizer, tokenizer.encode_pair(text, "the of", {true, 12}), text, "the of", true);
      tokenizer.encode_ids(text, 0, ids);
      (void)tokenizer.decode(ids);
    }
  } catch (const Error& error) {
    ++refused;
    EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
  }
}

TEST(Fuzz, MutatedTokenizerJson) {
  std::vector<json> documents;
  for (const auto& entry : golden::read_json(golden::kData / "variants.json")) {
    const json document = small(entry["base"].get<std::string>(), entry["patch"]);
    if (entry["patch"].contains("added_tokens")) continue;  // their ids are above the small vocabulary, which is fine, but they are many
    documents.push_back(document);
  }
  Rng rng(99);
  const Folder folder;
  size_t loaded = 0;
  size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    json document = documents[below(rng, documents.size())];
    for (size_t k = 1 + below(rng, 3); k > 0; --k) mutate(document, rng);
    std::string bytes = document.dump();
    if (below(rng, 4) == 0) {
      for (size_t k = 1 + below(rng, 4); k > 0; --k) bytes[below(rng, bytes.size())] = static_cast<char>(below(rng, 256));
    }
    SCOPED_TRACE(bytes.substr(0, 2000));
    folder.write("tokenizer.json", bytes);
    ASSERT_NO_THROW(load_and_use(folder, loaded, refused));
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(loaded, 300U);
  EXPECT_GT(refused, 300U);
}

TEST(Fuzz, RandomConfigs) {
  Rng rng(5);
  const Folder folder;
  folder.write("tokenizer.json", small("wordpiece", json::object()).dump());
  size_t loaded = 0;
  size_t refused = 0;
  for (int round = 0; round < 300; ++round) {
    json config = {
        {"model_max_length", 512}, {"pad_token", "[PAD]"}, {"mask_token", {{"content", "[MASK]"}}}, {"truncation_side", "right"}};
    mutate(config, rng);
    mutate(config, rng);
    folder.write(below(rng, 2) == 0 ? "tokenizer_config.json" : "special_tokens_map.json", config.dump());
    ASSERT_NO_THROW(load_and_use(folder, loaded, refused)) << config;
  }
  EXPECT_GT(loaded, 50U);
}

}  // namespace
}  // namespace muster::text
