// See merges.h. A heap holds pairs by the count they had when they were put in; a pair whose count fell since goes back with the new
// one. Words are changed in place, and only the neighbours of a joined pair are counted anew.
#include "text/merges.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>

#include "core/error.h"
#include "text/bpe.h"
#include "text/unicode.h"

namespace muster::text {

namespace {

using Pair = std::pair<int32_t, int32_t>;

struct PairHash {
  size_t operator()(const Pair& pair) const {
    const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(pair.first)) << 32 | static_cast<uint32_t>(pair.second);
    const uint64_t mixed = key * 0x9E3779B97F4A7C15u;
    return mixed ^ mixed >> 32;
  }
};

struct PairState {
  int64_t count = 0;
  std::vector<uint32_t> words;  // where it may occur; a word can be there twice, or no longer have the pair
};

struct Candidate {
  int64_t count;
  Pair pair;
  bool operator<(const Candidate& other) const { return count != other.count ? count < other.count : pair > other.pair; }
};

struct Vocabulary {
  std::vector<std::string> tokens;
  std::unordered_map<std::string, int32_t> ids;
  int32_t add(const std::string& token) {
    const auto [place, added] = ids.emplace(token, static_cast<int32_t>(tokens.size()));
    if (added) tokens.push_back(token);
    return place->second;
  }
};

/// The letters of a word as the vocabulary writes them, without a prefix.
template <typename F>
void for_each_letter(const std::string& word, bool bytes, F&& take) {
  for (size_t i = 0; i < word.size();) {
    if (bytes) {
      take(byte_symbol(static_cast<unsigned char>(word[i++])));
    } else {
      const Decoded step = decode_valid(word, i);
      take(step.code);
      i += step.size;
    }
  }
}

/// Code points by count, the commonest `limit` of them (0: all); of equally common ones the smaller stay.
std::vector<char32_t> alphabet_of(std::span<const CountedWord> words, const MergeOptions& options) {
  std::map<char32_t, int64_t> counts;
  for (const CountedWord& word : words) for_each_letter(word.word, options.bytes, [&](char32_t code) { counts[code] += word.count; });
  if (options.bytes)
    for (int byte = 0; byte < 256; ++byte) counts[byte_symbol(static_cast<unsigned char>(byte))] += 0;
  std::vector<std::pair<char32_t, int64_t>> letters(counts.begin(), counts.end());
  if (options.limit_alphabet > 0 && static_cast<int64_t>(letters.size()) > options.limit_alphabet) {
    std::stable_sort(letters.begin(), letters.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    letters.resize(static_cast<size_t>(options.limit_alphabet));
  }
  std::vector<char32_t> alphabet;
  for (const auto& [code, times] : letters) alphabet.push_back(code);
  std::sort(alphabet.begin(), alphabet.end());
  return alphabet;
}

std::string utf8(char32_t code) {
  std::string out;
  append_utf8(out, code);
  return out;
}

/// Every word as ids of letters; letters outside the alphabet vanish. Letters with the prefix get their ids here, sorted.
std::vector<std::vector<int32_t>> spell(std::span<const CountedWord> words, const MergeOptions& options, Vocabulary& vocabulary) {
  std::unordered_map<char32_t, int32_t> begins, follows;
  const std::vector<char32_t> alphabet = alphabet_of(words, options);
  for (const char32_t code : alphabet) begins[code] = vocabulary.add(utf8(code));
  if (options.prefix.empty()) {
    follows = begins;
  } else {
    std::vector<char32_t> inside;
    for (const CountedWord& word : words) {
      bool at_start = true;
      for_each_letter(word.word, options.bytes, [&](char32_t code) {
        if (!at_start && begins.contains(code) && follows.emplace(code, -1).second) inside.push_back(code);
        at_start = false;
      });
    }
    std::sort(inside.begin(), inside.end());
    for (const char32_t code : inside) follows[code] = vocabulary.add(options.prefix + utf8(code));
  }
  std::vector<std::vector<int32_t>> spelled(words.size());
  for (size_t w = 0; w < words.size(); ++w) {
    bool at_start = true;
    for_each_letter(words[w].word, options.bytes, [&](char32_t code) {
      const auto& table = at_start ? begins : follows;
      const auto found = table.find(code);
      if (found != table.end()) spelled[w].push_back(found->second);
      at_start = false;
    });
  }
  return spelled;
}

class Learner {
 public:
  Learner(std::span<const CountedWord> words, std::vector<std::vector<int32_t>> spelled) : words_(words), spelled_(std::move(spelled)) {
    for (size_t w = 0; w < spelled_.size(); ++w)
      for (size_t i = 0; i + 1 < spelled_[w].size(); ++i)
        change({spelled_[w][i], spelled_[w][i + 1]}, static_cast<uint32_t>(w), words_[w].count);
    for (const auto& [pair, state] : pairs_)
      if (state.count > 0) heap_.push({state.count, pair});
  }

  /// The commonest pair; a count of 0 when none is left.
  Candidate next() {
    while (!heap_.empty()) {
      Candidate top = heap_.top();
      heap_.pop();
      const int64_t now = pairs_[top.pair].count;
      if (now == top.count) return top;
      top.count = now;
      if (now > 0) heap_.push(top);
    }
    return {0, {-1, -1}};
  }

  void join(Pair pair, int32_t id) {
    const std::vector<uint32_t> where = std::move(pairs_[pair].words);
    pairs_[pair].words.clear();
    grown_.clear();
    uint32_t last = ~0u;
    for (const uint32_t w : where) {
      if (w != last) join_in(w, pair, id);  // the same word comes in a row
      last = w;
    }
    std::sort(grown_.begin(), grown_.end());
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (const Pair& grown : grown_)
      if (pairs_[grown].count > 0) heap_.push({pairs_[grown].count, grown});
  }

 private:
  void change(Pair pair, uint32_t word, int64_t by) {
    PairState& state = pairs_[pair];
    state.count += by;
    if (by > 0 && (state.words.empty() || state.words.back() != word)) state.words.push_back(word);
  }
  void join_in(uint32_t w, Pair pair, int32_t id) {
    std::vector<int32_t>& ids = spelled_[w];
    const int64_t times = words_[w].count;
    size_t kept = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i + 1 < ids.size() && ids[i] == pair.first && ids[i + 1] == pair.second) {
        if (kept > 0) {
          change({ids[kept - 1], pair.first}, w, -times);
          change({ids[kept - 1], id}, w, times);
          grown_.push_back({ids[kept - 1], id});
        }
        if (i + 2 < ids.size()) {
          change({pair.second, ids[i + 2]}, w, -times);
          change({id, ids[i + 2]}, w, times);
          grown_.push_back({id, ids[i + 2]});
        }
        ids[kept++] = id;
        ++i;
      } else {
        ids[kept++] = ids[i];
      }
    }
    ids.resize(kept);
  }

  std::span<const CountedWord> words_;
  std::vector<std::vector<int32_t>> spelled_;
  std::unordered_map<Pair, PairState, PairHash> pairs_;
  std::priority_queue<Candidate> heap_;
  std::vector<Pair> grown_;
};

}  // namespace

Merges learn_merges(std::span<const CountedWord> words, const MergeOptions& options, const std::atomic<bool>* stop,
                    const std::function<void(int64_t)>& progress) {
  Vocabulary vocabulary;
  for (const std::string& token : options.first) vocabulary.add(token);
  Learner learner(words, spell(words, options, vocabulary));
  if (static_cast<int64_t>(vocabulary.tokens.size()) > options.vocab_size)
    throw Error(ErrorKind::usage, "--vocab_size {}: the special tokens and the alphabet alone are {} tokens", options.vocab_size,
                vocabulary.tokens.size());
  Merges result;
  while (static_cast<int64_t>(vocabulary.tokens.size()) < options.vocab_size) {
    if (stop && *stop) throw Error(ErrorKind::cancelled, "stopped");
    const Candidate best = learner.next();
    if (best.count < std::max<int64_t>(1, options.min_frequency)) break;
    const std::string& right = vocabulary.tokens[static_cast<size_t>(best.pair.second)];
    const std::string joined = vocabulary.tokens[static_cast<size_t>(best.pair.first)] + right.substr(options.prefix.size());
    const int32_t id = vocabulary.add(joined);
    result.merges.push_back(best.pair);
    learner.join(best.pair, id);
    if (progress && vocabulary.tokens.size() % 10000 == 0) progress(static_cast<int64_t>(vocabulary.tokens.size()));
  }
  result.tokens = std::move(vocabulary.tokens);
  return result;
}

}  // namespace muster::text
