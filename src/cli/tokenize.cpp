// muster tokenize: what a model's tokenizer makes of texts, as JSON lines.
#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

#include "cli/support.h"
#include "cli/verbs.h"
#include "text/tokenizer.h"

namespace muster::cli {
namespace {

struct Flags {
  std::string model, file, pair;
  std::vector<std::string> texts;
  int max_length = 0;
  bool no_special_tokens = false, char_offsets = false;
};

template <typename T, typename Write>
void list(std::string& out, std::string_view name, const std::vector<T>& values, Write write) {
  out += fmt::format("{}\"{}\":[", out.size() > 1 ? "," : "", name);
  for (size_t i = 0; i < values.size(); ++i) out += (i ? "," : "") + write(values[i]);
  out += "]";
}

/// Byte offsets become character offsets, each in the text that its token came from.
void count_characters(text::Encoding& e, std::string_view text, std::string_view pair) {
  for (const uint8_t which : {uint8_t{0}, uint8_t{1}}) {
    std::vector<text::Offsets> bytes;
    for (size_t i = 0; i < e.offsets.size(); ++i)
      if (e.text_index[i] == which) bytes.push_back(e.offsets[i]);
    const std::vector<text::Offsets> characters = text::char_offsets(which == 0 ? text : pair, bytes);
    for (size_t i = 0, next = 0; i < e.offsets.size(); ++i)
      if (e.text_index[i] == which) e.offsets[i] = characters[next++];
  }
}

int run(const Flags& flags) {
  install_stop_flag();
  const ModelSource source(flags.model);
  const text::Tokenizer tokenizer = text::Tokenizer::load(source.folder());
  const text::EncodeOptions options{!flags.no_special_tokens, flags.max_length};
  const auto take = [&](std::string&& text) {
    throw_if_stopped();
    text::Encoding e = flags.pair.empty() ? tokenizer.encode(text, options) : tokenizer.encode_pair(text, flags.pair, options);
    if (flags.char_offsets) count_characters(e, text, flags.pair);
    std::string line = "{";
    list(line, "ids", e.ids, [](int32_t id) { return std::to_string(id); });
    list(line, "tokens", e.tokens, [](const std::string& token) { return json_string(token); });
    list(line, "offsets", e.offsets, [](const text::Offsets& o) { return fmt::format("[{},{}]", o.first, o.second); });
    list(line, "type_ids", e.type_ids, [](int32_t id) { return std::to_string(id); });
    std::cout << line << "}\n";
    if (!std::cout) throw Error(ErrorKind::io, "standard output: cannot write");
  };
  for_each_text(flags.texts, flags.file, take);
  return 0;
}

}  // namespace

std::function<int()> declare_tokenize(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--model,--tokenizer", flags->model, "folder with the tokenizer's files, or model.tar.gz")->required();
  app.add_option("--file", flags->file, "file of texts, one a line; -: standard input (also when no text is given)");
  app.add_option("texts", flags->texts, "texts");
  app.add_option("--pair", flags->pair, "second text, joined to each");
  app.add_option("--max_length", flags->max_length, "cut to this many tokens, special ones kept; 0: never")->check(CLI::Range(0, 1 << 30));
  app.add_flag("--no_special_tokens", flags->no_special_tokens, "leave [CLS], [SEP], <s>, </s> out");
  app.add_flag("--char_offsets", flags->char_offsets, "offsets in characters instead of bytes");
  return [flags] { return run(*flags); };
}

}  // namespace muster::cli
