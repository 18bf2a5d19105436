// SHA-256 against the examples of FIPS 180-4.
#include "storage/sha256.h"

#include "storage/file.h"
#include "temporary.h"

namespace muster::storage {
namespace {

using Sha256Test = TemporaryFolder;

TEST_F(Sha256Test, PublishedExamples) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_F(Sha256Test, PiecesAndFilesGiveTheSame) {
  const std::string million(1'000'000, 'a');
  constexpr const char* kExpected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
  Sha256 hash;
  for (size_t at = 0; at < million.size(); at += 777) hash.update(std::string_view(million).substr(at, 777));
  EXPECT_EQ(hash.hex(), kExpected);
  write_file_atomic(path("million"), million);
  EXPECT_EQ(sha256_file(path("million")), kExpected);
  EXPECT_THAT(message_of(ErrorKind::not_found, [&] { sha256_file(path("absent")); }), testing::HasSubstr("absent: no such file"));
}

}  // namespace
}  // namespace muster::storage
