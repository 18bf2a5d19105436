// How fast a tokenizer is on one core: text_speed FOLDER TEXT_FILE [SECONDS]. Lines are texts, seconds are
// processor time. Not run by ctest.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace {

/// Processor time, not wall time: the machine may be shared.
double now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

int run(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: text_speed FOLDER TEXT_FILE [SECONDS]\n";
    return 2;
  }
  const double budget = argc > 3 ? std::strtod(argv[3], nullptr) : 2.0;
  double start = now();
  const auto tokenizer = muster::text::Tokenizer::load(argv[1]);
  std::printf("load           %8.1f ms\n", (now() - start) * 1e3);
  std::vector<std::string> lines;
  std::ifstream stream(argv[2], std::ios::binary);
  size_t bytes = 0;
  for (std::string line; std::getline(stream, line);) {
    bytes += line.size();
    lines.push_back(line);
  }
  for (const bool detailed : {false, true}) {
    size_t tokens = 0;
    size_t passes = 0;
    std::vector<int32_t> ids;
    start = now();
    do {
      for (const std::string& line : lines) {
        if (detailed) {
          tokens += tokenizer.encode(line).ids.size();
        } else {
          ids.clear();
          tokens += tokenizer.encode_ids(line, 0, ids);
        }
      }
      ++passes;
    } while ((now() - start) < budget && !lines.empty());
    const double time = now() - start;
    std::printf("%-14s %8.2f M tokens/s, %7.1f MB/s, %zu lines, %.1f tokens a line\n", detailed ? "encode" : "encode_ids",
                static_cast<double>(tokens) / time / 1e6, static_cast<double>(bytes * passes) / time / 1e6, lines.size(),
                static_cast<double>(tokens) / static_cast<double>(passes * lines.size()));
  }
  return 0;
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
