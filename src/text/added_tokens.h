// Added tokens: strings that are found in the text before anything else looks at it ([MASK], user tokens).
// Source: tokenizer/added_vocabulary.rs of the Rust library.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/normalizer.h"

namespace muster::text {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space on its left
  bool rstrip = false;       // and on its right
  bool normalized = true;    // is looked for in the normalized text, in its own normalized form
};

/// A part of a text: an added token, or (token == nullptr) text in between.
struct Part {
  size_t begin;
  size_t end;
  const AddedToken* token;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  /// Throws Error(unsupported) when a normalized token vanishes under the normalizer (it would match everywhere).
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer);
  // The patterns point into tokens_: moving keeps them, copying would not.
  AddedTokens(const AddedTokens&) = delete;
  AddedTokens& operator=(const AddedTokens&) = delete;
  AddedTokens(AddedTokens&&) = default;
  AddedTokens& operator=(AddedTokens&&) = default;
  ~AddedTokens() = default;

  [[nodiscard]] const std::vector<AddedToken>& all() const { return tokens_; }
  [[nodiscard]] bool is_special(int32_t id) const;

  /// Cuts valid UTF-8 into parts: at the tokens that are looked for in raw text, or at those looked for in normalized text.
  /// Parts of text are not empty and cover everything between the tokens.
  void split_raw(std::string_view text, std::vector<Part>& parts) const { split(raw_, text, parts); }
  void split_normalized(std::string_view text, std::vector<Part>& parts) const { split(normalized_, text, parts); }

 private:
  struct Pattern {
    std::string text;
    const AddedToken* token;
  };
  struct Matcher {
    std::array<std::vector<Pattern>, 256> by_first_byte;  // longest first
    bool empty = true;
  };
  static void split(const Matcher& matcher, std::string_view text, std::vector<Part>& parts);

  std::vector<AddedToken> tokens_;
  Matcher raw_;
  Matcher normalized_;
};

}  // namespace muster::text
