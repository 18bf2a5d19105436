// Compares a tokenizer with goldens of the Rust library: text_compare_golden FOLDER GOLDEN_DIR, where GOLDEN_DIR has lines.txt and
// all.golden (tools/text/make_goldens.py --tokenizer). For vocabularies too big to commit; not run by ctest.
#include <cstdio>
#include <exception>
#include <iostream>

#include "text/golden.h"

namespace {

int run(int argc, char** argv) {
  namespace golden = muster::text::golden;
  if (argc != 3) {
    std::cerr << "usage: text_compare_golden FOLDER GOLDEN_DIR\n";
    return 2;
  }
  const auto tokenizer = muster::text::Tokenizer::load(argv[1]);
  const std::filesystem::path data = argv[2];
  const auto texts = golden::read_texts(data / "lines.txt");
  const auto lines = golden::read_lines(data / "all.golden");
  size_t same = 0;
  size_t fast_same = 0;
  std::vector<int32_t> ids;
  for (size_t i = 0; i < texts.size() && i < lines.size(); ++i) {
    const auto encoding = tokenizer.encode(texts[i]);
    const std::string difference = golden::difference(encoding, texts[i], {}, false, lines[i]);
    same += difference.empty() ? 1 : 0;
    if (!difference.empty() && i - same < 20) std::cout << "line " << i + 1 << ": " << difference << '\n';
    ids.clear();
    tokenizer.encode_ids(texts[i], 0, ids);
    fast_same += ids == encoding.ids ? 1 : 0;
  }
  std::printf("%zu of %zu lines identical (ids, offsets, tokens); encode_ids agrees on %zu\n", same, lines.size(), fast_same);
  return same == lines.size() && texts.size() == lines.size() && fast_same == same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
