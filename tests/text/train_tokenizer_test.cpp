// Learning vocabularies: against the Rust trainer, against counting everything anew at each step, and what may go wrong.
#include "text/train_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "core/error.h"
#include "storage/file.h"
#include "text/folders.h"
#include "text/golden.h"
#include "text/merges.h"
#include "text/word_counts.h"

namespace muster::text {
namespace {

using golden::Folder;
using golden::kData;
using testing::ElementsAre;
using testing::HasSubstr;

void quiet(const std::string&) {}

EachText texts_of(std::vector<std::string> texts) {
  return [texts = std::move(texts)](const std::function<void(std::string_view)>& add) {
    for (const std::string& text : texts) add(text);
  };
}

std::string read(const std::filesystem::path& file) { return storage::read_file(file.string()); }

/// The same by hand: every pair of every word counted anew for each merge.
std::vector<std::string> learn_slowly(const std::vector<CountedWord>& words, int64_t size, int64_t min_frequency,
                                      const std::string& prefix) {
  std::vector<std::string> tokens;
  const auto id_of = [&](const std::string& token) {
    const auto found = std::find(tokens.begin(), tokens.end(), token);
    if (found == tokens.end()) tokens.push_back(token);
    return std::find(tokens.begin(), tokens.end(), token) - tokens.begin();
  };
  std::set<std::string> begins, follows;
  for (const CountedWord& word : words)
    for (size_t i = 0; i < word.word.size(); ++i) {
      begins.insert(word.word.substr(i, 1));
      if (i > 0) follows.insert(word.word.substr(i, 1));
    }
  for (const std::string& letter : begins) id_of(letter);
  if (!prefix.empty())
    for (const std::string& letter : follows) id_of(prefix + letter);
  std::vector<std::vector<long>> spelled(words.size());
  for (size_t w = 0; w < words.size(); ++w)
    for (size_t i = 0; i < words[w].word.size(); ++i) spelled[w].push_back(id_of((i > 0 ? prefix : "") + words[w].word.substr(i, 1)));
  while (static_cast<int64_t>(tokens.size()) < size) {
    std::map<std::pair<long, long>, int64_t> counts;
    for (size_t w = 0; w < words.size(); ++w)
      for (size_t i = 0; i + 1 < spelled[w].size(); ++i) counts[{spelled[w][i], spelled[w][i + 1]}] += words[w].count;
    std::pair<long, long> best{-1, -1};
    int64_t most = min_frequency - 1;
    for (const auto& [pair, count] : counts)
      if (count > most) most = count, best = pair;
    if (best.first < 0) break;
    const auto joined = id_of(tokens[static_cast<size_t>(best.first)] + tokens[static_cast<size_t>(best.second)].substr(prefix.size()));
    for (auto& ids : spelled)
      for (size_t i = 0; i + 1 < ids.size(); ++i)
        if (ids[i] == best.first && ids[i + 1] == best.second) ids[i] = joined, ids.erase(ids.begin() + static_cast<long>(i) + 1);
  }
  return tokens;
}

TEST(TrainTokenizer, ByteLevelBpeIsWhatTheRustTrainerLearns) {
  ThreadPool threads(2);
  const std::string lines = read(kData / "lines.txt");
  for (const std::string& golden : golden::read_lines(kData / "trained.golden")) {
    std::istringstream fields(golden);
    TrainTokenizerOptions options;
    int64_t tokens = 0, merges = 0;
    std::string expected;
    fields >> options.vocab_size >> tokens >> merges >> expected;
    options.type = TokenizerType::bpe;
    const Folder folder;
    const TrainedTokenizer trained = train_tokenizer(texts_of({lines}), options, (folder.path() / "out").string(), threads, nullptr, quiet);
    EXPECT_EQ(trained.tokens, tokens);
    EXPECT_EQ(trained.merges, merges);
    const auto json = nlohmann::json::parse(read(folder.path() / "out/tokenizer.json"));
    std::vector<std::string> by_id(static_cast<size_t>(tokens));
    for (const auto& [token, id] : json["model"]["vocab"].items()) by_id.at(id.get<size_t>()) = token;
    golden::Digest digest;
    for (const std::string& token : by_id) {
      for (const char byte : token) digest.add(static_cast<unsigned char>(byte));
      digest.add(256);
    }
    for (const auto& merge : json["model"]["merges"])
      for (const auto& side : merge) digest.add(json["model"]["vocab"][side.get<std::string>()].get<uint64_t>());
    EXPECT_EQ(digest.hex(), expected) << options.vocab_size;
  }
}

TEST(TrainTokenizer, MergesAreThoseOfCountingAnewEachTime) {
  uint64_t state = 7;
  const auto draw = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 40; ++round) {
    std::map<std::string, int64_t> counts;
    const uint64_t letters = 2 + draw(5);
    for (int w = 0; w < 60; ++w) {
      std::string word;
      for (uint64_t n = 1 + draw(9); n > 0; --n) word += static_cast<char>('a' + draw(letters));
      counts[word] += 1 + static_cast<int64_t>(draw(6));
    }
    // Runs of one letter are left out: there the Rust trainer, which we follow, does not lower the count of what overlaps.
    std::vector<CountedWord> words;
    for (const auto& [word, count] : counts)
      if (std::adjacent_find(word.begin(), word.end()) == word.end()) words.push_back({word, count});
    for (const char* prefix : {"", "##"}) {
      MergeOptions options;
      options.vocab_size = 20 + static_cast<int64_t>(draw(100));
      options.min_frequency = 1 + static_cast<int64_t>(draw(3));
      options.prefix = prefix;
      EXPECT_EQ(learn_merges(words, options).tokens, learn_slowly(words, options.vocab_size, options.min_frequency, prefix)) << round;
    }
  }
}

TEST(TrainTokenizer, WordsAreThoseOfTheWholeTextHoweverItIsCut) {
  const std::string lines = read(kData / "lines.txt");
  for (const bool bert : {true, false}) {
    Normalizer normalizer;
    PreTokenizer pre_tokenizer;
    if (bert) {
      normalizer.add(BertNormalizer{});
      pre_tokenizer.add(PreTokenizerStep::bert);
    } else {
      pre_tokenizer.add(ByteLevelOptions{false, true});
    }
    std::map<std::string, int64_t> expected;
    std::istringstream stream(lines);
    for (std::string line; std::getline(stream, line);) {
      Normalized piece;
      line += "\n";
      const std::string valid = to_valid_utf8(line);
      piece.assign(valid, 0, valid.size(), false);
      normalizer.apply(piece);
      std::vector<Word> words;
      pre_tokenizer.split(piece, words);
      for (const Word word : words) ++expected[piece.text.substr(word.begin, word.end - word.begin)];
    }
    ThreadPool threads(3);
    WordCounts counts(normalizer, pre_tokenizer, threads);
    counts.add(lines);
    std::map<std::string, int64_t> found;
    for (const CountedWord& word : counts.words()) found[word.word] = word.count;
    EXPECT_EQ(found, expected);
  }
}

TEST(TrainTokenizer, WordPieceFilesLoadAndDependOnNothingButTheTextAndTheFlags) {
  const std::string lines = read(kData / "lines.txt");
  TrainTokenizerOptions options;
  options.vocab_size = 2500;
  options.special_tokens = {"[USER]"};
  const Folder folder;
  ThreadPool one(1), three(3);
  const std::string first = (folder.path() / "first").string(), second = (folder.path() / "second").string();
  EXPECT_EQ(train_tokenizer(texts_of({lines}), options, first, one, nullptr, quiet).tokens, 2500);
  const size_t middle = lines.find('\n', lines.size() / 2) + 1;
  train_tokenizer(texts_of({lines.substr(middle), lines.substr(0, middle)}), options, second, three, nullptr, quiet);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"})
    EXPECT_EQ(read(first + "/" + name), read(second + "/" + name)) << name;
  const Tokenizer tokenizer = Tokenizer::load(first);
  EXPECT_EQ(tokenizer.vocab_size(), 2500);
  EXPECT_EQ(tokenizer.pad_id(), 0);
  EXPECT_EQ(tokenizer.mask_id(), 4);
  EXPECT_EQ(tokenizer.token_to_id("[USER]"), 5);
  EXPECT_EQ(tokenizer.model_max_length(), 512);
  EXPECT_THAT(tokenizer.encode("[USER]").ids, ElementsAre(2, 5, 3));
  // Without tokenizer.json the other files give the same ids.
  std::filesystem::remove(second + "/tokenizer.json");
  const Tokenizer from_vocab = Tokenizer::load(second);
  for (const std::string& text : golden::read_texts(kData / "lines.txt")) {
    if (text.find('[') != std::string::npos) continue;  // [USER] is a token of tokenizer.json only
    EXPECT_EQ(tokenizer.encode(text).ids, from_vocab.encode(text).ids) << text;
  }
}

TEST(TrainTokenizer, SaysWhatIsWrongAndLeavesNothingBehind) {
  const Folder folder;
  ThreadPool threads(1);
  const std::string out = (folder.path() / "out").string();
  TrainTokenizerOptions options;
  const auto error_of = [&](const std::vector<std::string>& texts) -> std::string {
    try {
      train_tokenizer(texts_of(texts), options, out, threads, nullptr, quiet);
      return "none";
    } catch (const Error& e) {
      return e.what();
    }
  };
  EXPECT_THAT(error_of({}), HasSubstr("no words"));
  EXPECT_THAT(error_of({" \n \n"}), HasSubstr("no words"));
  options.vocab_size = 6;
  EXPECT_THAT(error_of({"abc"}), HasSubstr("alone are 10 tokens"));  // five special ones, a b c, ##b ##c
  options.special_tokens = {"[CLS]"};
  EXPECT_THAT(error_of({"abc"}), HasSubstr("'[CLS]' is there already"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  options = {};
  std::atomic<bool> stop{true};
  EXPECT_THROW(train_tokenizer(texts_of({"abc"}), options, out, threads, &stop, quiet), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(error_of({"abc abc"}), "none");
  EXPECT_THAT(error_of({"abc"}), HasSubstr("out"));  // it is there
}

}  // namespace
}  // namespace muster::text
