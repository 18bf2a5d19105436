// Packing and unpacking what is well-formed; hostile archives have a file of their own.
#include "storage/archive.h"

#include <sys/stat.h>

#include <chrono>
#include <cstring>

#include "core/philox.h"
#include "storage/file.h"
#include "temporary.h"

namespace muster::storage {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class ArchiveTest : public TemporaryFolder {
 protected:
  ArchiveTest() {
    make_folders(path("m/code/empty"));
    write_file_atomic(path("m/config.json"), "{}");
    Philox random(3);
    std::string noise(700'000, '\0');
    for (char& c : noise) c = static_cast<char>(random.next() & 15);
    write_file_atomic(path("m/model.safetensors"), noise);
    write_file_atomic(path("m/empty"), "");
    write_file_atomic(path("m/code/" + std::string(200, 'n') + ".py"), "long");
    write_file_atomic(path("m/code/größe 😀.txt"), "unicode");
    write_file_atomic(path("m/code/run.sh"), "#!/bin/sh\n");
    ::chmod(path("m/code/run.sh").c_str(), 0700);
  }
};

TEST_F(ArchiveTest, ComesBackAsItWas) {
  pack_tar_gz(path("m"), path("m.tar.gz"));
  unpack_tar_gz(path("m.tar.gz"), path("back"));
  const auto before = list_tree(path("m")), after = list_tree(path("back"));
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].name, after[i].name);
    EXPECT_EQ(before[i].kind, after[i].kind);
    if (before[i].kind != TreeEntry::Kind::file) continue;
    EXPECT_EQ(read_file(path("m/" + before[i].name)), read_file(path("back/" + before[i].name)));
  }
  EXPECT_NE(fs::status(path("back/code/run.sh")).permissions() & fs::perms::owner_exec, fs::perms::none);
  EXPECT_EQ(fs::status(path("back/config.json")).permissions() & fs::perms::owner_exec, fs::perms::none);
  EXPECT_EQ(entries(), 3);
}

TEST_F(ArchiveTest, SameContentGivesTheSameBytes) {
  pack_tar_gz(path("m"), path("1.tar.gz"));
  fs::copy(path("m"), path("other"), fs::copy_options::recursive);
  for (const fs::directory_entry& item : fs::recursive_directory_iterator(path("other"))) {
    fs::last_write_time(item, fs::file_time_type::clock::now() - std::chrono::hours(1000));
    if (item.is_regular_file()) ::chmod(item.path().c_str(), item.path().extension() == ".sh" ? 0755 : 0600);
  }
  pack_tar_gz(path("other") + "/", path("2.tar.gz"));
  EXPECT_EQ(read_file(path("1.tar.gz")), read_file(path("2.tar.gz")));
  write_file_atomic(path("other/config.json"), "{ }");
  pack_tar_gz(path("other"), path("2.tar.gz"));
  EXPECT_NE(read_file(path("1.tar.gz")), read_file(path("2.tar.gz")));
}

TEST_F(ArchiveTest, NothingFollowsTheGzipTrailer) {
  pack_tar_gz(path("m"), path("m.tar.gz"));
  ASSERT_EQ(std::system(("gzip -dc " + path("m.tar.gz") + " > " + path("m.tar")).c_str()), 0);
  const std::string packed = read_file(path("m.tar.gz"));
  uint32_t length = 0;  // the last field: unpacked bytes, little endian
  std::memcpy(&length, packed.data() + packed.size() - sizeof length, sizeof length);
  EXPECT_EQ(length, fs::file_size(path("m.tar")));
}

TEST_F(ArchiveTest, CanBeGivenUpBetweenBlocks) {
  const auto give_up = [] { throw Error(ErrorKind::cancelled, "stop"); };
  message_of(ErrorKind::cancelled, [&] { pack_tar_gz(path("m"), path("m.tar.gz"), {1, give_up}); });
  EXPECT_EQ(entries(), 1) << "only what was packed";
  pack_tar_gz(path("m"), path("m.tar.gz"));
  UnpackLimits limits;
  limits.between_blocks = give_up;
  message_of(ErrorKind::cancelled, [&] { unpack_tar_gz(path("m.tar.gz"), path("back"), limits); });
  EXPECT_EQ(entries(), 2);
}

TEST_F(ArchiveTest, GzipHeaderHasNoTimeAndFilesLieAtTheRoot) {
  pack_tar_gz(path("m"), path("m.tar.gz"));
  EXPECT_EQ(read_file(path("m.tar.gz")).substr(0, 8), std::string("\x1f\x8b\x08\0\0\0\0\0", 8));
  const std::string list = path("list");
  ASSERT_EQ(std::system(("tar -tvzf " + path("m.tar.gz") + " > " + list).c_str()), 0);
  EXPECT_THAT(read_file(list), HasSubstr("-rw-r--r-- 0/0               2 1970-01-01 00:00 config.json\n"));
  EXPECT_THAT(read_file(list), HasSubstr("-rwxr-xr-x 0/0              10 1970-01-01 00:00 code/run.sh\n"));
}

TEST_F(ArchiveTest, ReadsWhatTarWrites) {
  for (const char* format : {"gnu", "pax", "ustar"}) {
    const std::string archive = path(std::string(format) + ".tar.gz"), target = path(std::string("from-") + format);
    if (std::string(format) == "ustar") remove_tree(path("m/code/" + std::string(200, 'n') + ".py"));  // too long for that format
    ASSERT_EQ(std::system(("tar -czf " + archive + " --format=" + format + " -C " + path("m") + " .").c_str()), 0);
    unpack_tar_gz(archive, target);
    EXPECT_EQ(read_file(target + "/code/größe 😀.txt"), "unicode") << format;
    EXPECT_EQ(list_tree(target).size(), list_tree(path("m")).size()) << format;
  }
}

TEST_F(ArchiveTest, PackingRefusesLinksAndItsOwnFolder) {
  EXPECT_THAT(message_of(ErrorKind::invalid_argument, [&] { pack_tar_gz(path("m"), path("m/code/m.tar.gz")); }),
              HasSubstr("into the folder"));
  fs::create_symlink("config.json", path("m/link"));
  EXPECT_THAT(message_of(ErrorKind::invalid_argument, [&] { pack_tar_gz(path("m"), path("m.tar.gz")); }),
              HasSubstr("m/link: it is a link or a device; replace it by a plain file"));
  remove_tree(path("m/link"));
  ASSERT_EQ(::mkfifo(path("m/pipe").c_str(), 0600), 0);
  message_of(ErrorKind::invalid_argument, [&] { pack_tar_gz(path("m"), path("m.tar.gz")); });
  make_folders(path("none"));
  EXPECT_THAT(message_of(ErrorKind::invalid_argument, [&] { pack_tar_gz(path("none"), path("m.tar.gz")); }),
              HasSubstr("the folder is empty"));
  message_of(ErrorKind::not_found, [&] { pack_tar_gz(path("absent"), path("m.tar.gz")); });
  EXPECT_EQ(entries(), 2);
}

TEST_F(ArchiveTest, AFullDiskIsAnErrorOfTheDisk) {
  EXPECT_THAT(message_of(ErrorKind::io, [&] { pack_tar_gz(path("m"), "/dev/full", {1}); }),
              HasSubstr("cannot write /dev/full (archive): No space left on device"));
}

TEST_F(ArchiveTest, LimitsAreKept) {
  pack_tar_gz(path("m"), path("m.tar.gz"));
  const auto unpack = [&](const UnpackLimits& limits) { unpack_tar_gz(path("m.tar.gz"), path("back"), limits); };
  EXPECT_THAT(message_of(ErrorKind::too_large, [&] { unpack({.max_bytes = 600'000}); }),
              HasSubstr("more than 600000 bytes unpacked (at 'model.safetensors')"));
  EXPECT_THAT(message_of(ErrorKind::too_large, [&] { unpack({.max_files = 4}); }), HasSubstr("more than 4 files"));
  EXPECT_EQ(entries(), 2);
  make_folders(path("back"));
  EXPECT_THAT(message_of(ErrorKind::io, [&] { unpack({}); }), HasSubstr("already exists"));
}

TEST_F(ArchiveTest, AnArchiveThatExplodesIsStopped) {
  fs::remove_all(path("m"));
  make_folders(path("m"));
  write_file_atomic(path("m/zeros"), "");
  fs::resize_file(path("m/zeros"), 100 << 20);
  pack_tar_gz(path("m"), path("m.tar.gz"), {1});
  EXPECT_THAT(message_of(ErrorKind::too_large, [&] { unpack_tar_gz(path("m.tar.gz"), path("back")); }),
              HasSubstr("unpacks to more than 200 times its size"));
  EXPECT_EQ(entries(), 2);
}

}  // namespace
}  // namespace muster::storage
