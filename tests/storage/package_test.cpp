// The manifest: written, read, and compared with the files.
#include "storage/package.h"

#include <functional>

#include "storage/file.h"
#include "storage/sha256.h"
#include "temporary.h"

namespace muster::storage {
namespace {

using testing::HasSubstr;

class PackageTest : public TemporaryFolder {
 protected:
  PackageTest() {
    make_folders(path("m/code"));
    write_file_atomic(path("m/config.json"), "{}");
    write_file_atomic(path("m/model.safetensors"), "weights");
    write_file_atomic(path("m/code/inference.py"), "print()");
    Manifest info;
    info.muster_version = "0.1.0";
    info.model_type = "roberta";
    info.labels = {"negativ", "neutral", "positiv \"ü\""};
    info.created_by = {{"compiler", "g++ 12"}};
    write_manifest(path("m"), info);
  }
  std::string verify_error() {
    return message_of(ErrorKind::corrupt, [&] { verify_manifest(path("m")); });
  }
};

TEST_F(PackageTest, HoldsWhatWasGivenAndEveryFile) {
  const std::optional<Manifest> manifest = verify_manifest(path("m"));
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->format_version, 1);
  EXPECT_EQ(manifest->muster_version, "0.1.0");
  EXPECT_EQ(manifest->model_type, "roberta");
  EXPECT_EQ(manifest->labels.at(2), "positiv \"ü\"");
  EXPECT_EQ(manifest->created_by.at("compiler"), "g++ 12");
  ASSERT_EQ(manifest->files.size(), 3U);
  EXPECT_EQ(manifest->files.at("code/inference.py").sha256, sha256_hex("print()"));
  EXPECT_EQ(manifest->files.at("model.safetensors").bytes, 7U);
}

TEST_F(PackageTest, WritingAgainGivesTheSameBytes) {
  const std::string first = read_file(path("m/manifest.json"));
  write_manifest(path("m"), *read_manifest(path("m")));
  EXPECT_EQ(read_file(path("m/manifest.json")), first);
}

TEST_F(PackageTest, NoManifestIsNoError) {
  remove_tree(path("m/manifest.json"));
  EXPECT_FALSE(verify_manifest(path("m")));
  message_of(ErrorKind::not_found, [&] { verify_manifest(path("absent")); });
}

TEST_F(PackageTest, AChangedFileIsNamed) {
  write_file_atomic(path("m/model.safetensors"), "weighty");
  EXPECT_EQ(verify_error(), path("m") +
                                ": model.safetensors has another SHA-256 than the manifest says; the package is not what manifest.json "
                                "describes, fetch or pack it again");
  write_file_atomic(path("m/code/inference.py"), "print(1)");
  EXPECT_THAT(verify_error(), HasSubstr("code/inference.py has 8 bytes where the manifest says 7"));
}

TEST_F(PackageTest, AMissingOrForeignFileIsNamed) {
  write_file_atomic(path("m/zebra"), "");
  EXPECT_THAT(verify_error(), HasSubstr("zebra is not listed in its manifest"));
  write_file_atomic(path("m/another"), "");
  EXPECT_THAT(verify_error(), HasSubstr("another is not listed"));
  remove_tree(path("m/another"));
  remove_tree(path("m/model.safetensors"));
  EXPECT_THAT(verify_error(), HasSubstr("model.safetensors is missing"));
}

TEST_F(PackageTest, LinksAreRefused) {
  std::filesystem::create_symlink("/etc/passwd", path("m/link"));
  EXPECT_THAT(message_of(ErrorKind::invalid_argument, [&] { verify_manifest(path("m")); }),
              HasSubstr("link: a package holds plain files only"));
  EXPECT_THAT(message_of(ErrorKind::invalid_argument, [&] { write_manifest(path("m"), {}); }), HasSubstr("plain files only"));
}

TEST_F(PackageTest, MalformedManifestsAreRefused) {
  const auto with = [&](const std::string& text) { write_file_atomic(path("m/manifest.json"), text); };
  for (const char* text : {"", "{", "[]", "{}", R"({"format_version":"1"})",
                           R"({"format_version":1,"muster_version":"","model_type":"","labels":{},"created_by":{},"files":{}})",
                           R"({"format_version":1,"muster_version":"","model_type":"","labels":[],"created_by":{},"files":{"a":1}})"}) {
    with(text);
    EXPECT_THAT(verify_error(), HasSubstr("manifest.json: ")) << text;
  }
  with(R"({"format_version":2})");
  EXPECT_THAT(message_of(ErrorKind::unsupported, [&] { verify_manifest(path("m")); }),
              HasSubstr("format version 2 is newer than this muster knows (1)"));
}

}  // namespace
}  // namespace muster::storage
