// Mutations of a valid file: each opens or is refused with Error(corrupt), and what opens can be read to its last byte.
#include <unistd.h>

#include "core/philox.h"
#include "storage/file.h"
#include "storage/safetensors.h"
#include "temporary.h"

namespace muster::storage {
namespace {

using SafetensorsFuzz = TemporaryFolder;

/// Reads every byte the views give out, so that a wrong offset is a fault here.
uint64_t read_all(const SafetensorsFile& file) {
  uint64_t sum = 0;
  for (const auto& [name, info] : file.tensors()) {
    if (!info.dtype) continue;
    const TensorView view = file.view(name);
    for (size_t i = 0; i < view.bytes(); ++i) sum += static_cast<const uint8_t*>(view.data)[i];
    if (is_float(view.dtype)) sum += static_cast<uint64_t>(file.load_f32(name).elements());
  }
  return sum;
}

TEST_F(SafetensorsFuzz, MutationsAreRefusedOrReadable) {
  const std::string valid = read_file(std::string(MUSTER_TEST_DATA) + "/storage/mixed.safetensors");
  constexpr std::string_view kTokens = "{}[]\",:0123456789-.e\\u \0\xff\x80nt";
  Philox random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random.below(static_cast<uint32_t>(n))); };
  int opened = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string content = valid;
    const size_t changes = 1 + below(3);
    for (size_t change = 0; change < changes && content.size() > 1; ++change) {
      const size_t at = below(below(4) == 0 ? std::min<size_t>(content.size(), 8) : content.size());
      switch (below(5)) {
        case 0: content[at] = static_cast<char>(random.next()); break;
        case 1: content[at] = kTokens[below(kTokens.size())]; break;
        case 2: content.insert(at, 1, kTokens[below(kTokens.size())]); break;
        case 3: content.erase(at, 1 + below(8)); break;
        default: content.resize(at); break;
      }
    }
    // Not atomically: syncing thousands of files would test the disk.
    ::unlink(path("x").c_str());
    FILE* file = std::fopen(path("x").c_str(), "wb");
    std::fwrite(content.data(), 1, content.size(), file);
    std::fclose(file);
    try {
      read_all(SafetensorsFile::open(path("x")));
      ++opened;
    } catch (const Error& error) {
      ASSERT_EQ(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::corrupt)) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(opened, 10);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace muster::storage
