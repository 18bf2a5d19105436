// Archives made to do harm: nothing is written outside the target, nothing is left behind, and each is refused with its reason.
#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "core/philox.h"
#include "storage/archive.h"
#include "storage/file.h"
#include "temporary.h"

namespace muster::storage {
namespace {

using testing::HasSubstr;

struct Item {
  std::string name;
  unsigned type = AE_IFREG;
  std::string content = "x";
  std::string symlink = {}, hardlink = {};
};

struct Hostile {
  const char* name;
  std::vector<Item> items;
  const char* message;
};

void write_archive(const std::string& path, const std::vector<Item>& items, bool gzip = true) {
  struct archive* out = archive_write_new();
  if (gzip) archive_write_add_filter_gzip(out);
  archive_write_set_format_gnutar(out);
  ASSERT_EQ(archive_write_open_filename(out, path.c_str()), ARCHIVE_OK);
  for (const Item& item : items) {
    struct archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, item.name.c_str());
    archive_entry_set_filetype(entry, item.type);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, item.type == AE_IFREG && item.hardlink.empty() ? static_cast<la_int64_t>(item.content.size()) : 0);
    if (!item.symlink.empty()) archive_entry_set_symlink(entry, item.symlink.c_str());
    if (!item.hardlink.empty()) archive_entry_set_hardlink(entry, item.hardlink.c_str());
    ASSERT_EQ(archive_write_header(out, entry), ARCHIVE_OK) << archive_error_string(out);
    if (item.type == AE_IFREG && item.hardlink.empty()) archive_write_data(out, item.content.data(), item.content.size());
    archive_entry_free(entry);
  }
  ASSERT_EQ(archive_write_close(out), ARCHIVE_OK);
  archive_write_free(out);
}

class HostileArchive : public TemporaryFolder, public testing::WithParamInterface<Hostile> {};

TEST_P(HostileArchive, IsRefusedAndLeavesNothing) {
  make_folders(path("in"));
  write_archive(path("in/evil.tar.gz"), GetParam().items);
  const std::string message = message_of(ErrorKind::corrupt, [&] { unpack_tar_gz(path("in/evil.tar.gz"), path("target")); });
  EXPECT_THAT(message, HasSubstr(GetParam().message));
  EXPECT_THAT(message, testing::StartsWith(path("in/evil.tar.gz") + ": "));
  EXPECT_EQ(entries(), 1);
  EXPECT_EQ(list_tree(path("in")).size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileArchive,
    testing::Values(Hostile{"Absolute", {{"ok"}, {"/tmp/muster-evil"}}, "'/tmp/muster-evil' has an absolute name"},
                    Hostile{"DotDot", {{"../evil"}}, "leads out of the folder"},
                    Hostile{"DotDotInside", {{"a/../../evil"}}, "leads out of the folder"},
                    Hostile{"DotDotEnd", {{"a/..", AE_IFDIR}}, "leads out of the folder"},
                    Hostile{"Symlink", {{"ok"}, {"link", AE_IFLNK, "", "/etc"}, {"link/passwd"}}, "'link' is a link, device or pipe"},
                    Hostile{"SymlinkInside", {{"ok"}, {"link", AE_IFLNK, "", "ok"}}, "'link' is a link, device or pipe"},
                    Hostile{"Hardlink", {{"ok"}, {"hard", AE_IFREG, "", "", "ok"}}, "'hard' is a link, device or pipe"},
                    Hostile{"Fifo", {{"pipe", AE_IFIFO}}, "'pipe' is a link, device or pipe"},
                    Hostile{"CharDevice", {{"null", AE_IFCHR}}, "'null' is a link, device or pipe"},
                    Hostile{"BlockDevice", {{"disk", AE_IFBLK}}, "'disk' is a link, device or pipe"},
                    Hostile{"Twice", {{"a"}, {"b"}, {"./a"}}, "'a' is there twice"},
                    Hostile{"FolderTwice", {{"a", AE_IFDIR}, {"a/", AE_IFDIR}}, "'a' is there twice"},
                    Hostile{"FileThenFolder", {{"a"}, {"a/b"}}, "'a' is there twice"},
                    Hostile{"FolderThenFile", {{"a/b"}, {"a"}}, "'a' is there twice"}, Hostile{"Newline", {{"a\nb"}}, "control character"},
                    Hostile{"RootAsFile", {{"."}}, "a file has no name"}, Hostile{"OnlyRoot", {{"./", AE_IFDIR}}, "the archive is empty"},
                    Hostile{"LongPart", {{std::string(256, 'n')}}, "too long a name"}, Hostile{"Empty", {}, "the archive is empty"}),
    [](const auto& test) { return test.param.name; });

using ArchiveDamage = TemporaryFolder;

TEST_F(ArchiveDamage, FoldersMayBeNamedAfterTheirFiles) {
  write_archive(path("x.tar.gz"), {{"./", AE_IFDIR}, {"./a//b/c"}, {"a/b/", AE_IFDIR}, {"a", AE_IFDIR}});
  unpack_tar_gz(path("x.tar.gz"), path("target"));
  EXPECT_EQ(read_file(path("target/a/b/c")), "x");
}

TEST_F(ArchiveDamage, ANulEndsAName) {
  write_archive(path("x.tar"), {{"ok-evil"}}, false);
  std::string tar = read_file(path("x.tar"));
  tar[2] = '\0';  // "ok\0evil"; the checksum must agree
  unsigned sum = 0;
  std::memset(tar.data() + 148, ' ', 8);
  for (int i = 0; i < 512; ++i) sum += static_cast<unsigned char>(tar[i]);
  std::snprintf(tar.data() + 148, 8, "%06o", sum);
  write_file_atomic(path("x.tar"), tar);
  ASSERT_EQ(std::system(("gzip -n " + path("x.tar")).c_str()), 0);
  unpack_tar_gz(path("x.tar.gz"), path("target"));
  EXPECT_EQ(list_tree(path("target")).size(), 1U);
  EXPECT_EQ(read_file(path("target/ok")), "x");
}

TEST_F(ArchiveDamage, OtherFilesAreNotTaken) {
  const auto unpack = [&] { unpack_tar_gz(path("x"), path("target")); };
  write_archive(path("x"), {{"a"}}, false);
  EXPECT_THAT(message_of(ErrorKind::corrupt, unpack), HasSubstr("not a gzip-compressed tar; pack it with"));
  write_file_atomic(path("x"), "");
  message_of(ErrorKind::corrupt, unpack);
  write_file_atomic(path("x"), "some text, not an archive at all");
  message_of(ErrorKind::corrupt, unpack);
  remove_tree(path("x"));
  message_of(ErrorKind::not_found, unpack);
  EXPECT_EQ(entries(), 0);
}

class DamagedArchive : public TemporaryFolder {
 protected:
  DamagedArchive() {
    Philox random(5);
    std::string noise(5000, '\0');
    for (char& c : noise) c = static_cast<char>(random.next());
    write_archive(path("x.tar.gz"), {{"config.json", AE_IFREG, "{}"}, {"model", AE_IFREG, noise}, {"code/x.py", AE_IFREG, "print()"}});
    whole_ = read_file(path("x.tar.gz"));
  }
  void overwrite(const std::string& content) {
    ::unlink(path("x.tar.gz").c_str());  // not atomically: syncing would test the disk
    FILE* file = std::fopen(path("x.tar.gz").c_str(), "wb");
    std::fwrite(content.data(), 1, content.size(), file);
    std::fclose(file);
  }
  std::string whole_;
};

TEST_F(DamagedArchive, EveryTruncationIsSeen) {
  // The last 8 bytes are gzip's own checksum, after the end of the tar.
  for (size_t size = 0; size + 8 < whole_.size(); size += size < 40 || size + 60 > whole_.size() ? 1 : 61) {
    overwrite(whole_.substr(0, size));
    message_of(ErrorKind::corrupt, [&] { unpack_tar_gz(path("x.tar.gz"), path("target")); });
    ASSERT_EQ(entries(), 1) << size;
  }
}

TEST_F(DamagedArchive, MutationsAreRefusedOrUnpackInsideTheTarget) {
  Philox random(11);
  for (int round = 0; round < 40; ++round) {
    std::string content = whole_;
    content[random.below(static_cast<uint32_t>(content.size()))] ^= static_cast<char>(1 + random.below(255));
    overwrite(content);
    try {
      unpack_tar_gz(path("x.tar.gz"), path("target"));
      remove_tree(path("target"));
    } catch (const Error& error) {
      ASSERT_NE(static_cast<int>(error.kind()), static_cast<int>(ErrorKind::internal)) << error.what();
    }
    ASSERT_EQ(entries(), 1);
  }
}

}  // namespace
}  // namespace muster::storage
