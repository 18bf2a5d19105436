// Tweet clean-up as models trained on tweets expect it: user names and links replaced by fixed words. Tokenizer normalisation is text's.
#pragma once
#include <string>
#include <string_view>

namespace muster::data {

enum class Normalization {
  none,
  timelms,     // cardiffnlp/timelms clean_text: split at white space, "@name" -> "@user", "http..." -> "http", joined by one space
  model_card,  // the models' cards: the same words, split at single spaces only, so that other white space survives
};

/// Throws Error(usage) on an unknown name, listing the known ones.
Normalization parse_normalization(std::string_view name);
std::string_view name_of(Normalization mode);

std::string normalize_tweet(std::string_view text, Normalization mode);

}  // namespace muster::data
