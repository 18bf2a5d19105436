// Folders that appear whole or not at all, and the leftovers of killed processes.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "storage/descriptor.h"
#include "storage/file.h"
#include "temporary.h"

namespace muster::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using FolderTest = TemporaryFolder;

TEST_F(FolderTest, AppearsAtCommit) {
  AtomicFolder folder(path("out/"));
  write_file_atomic(folder.path() + "/a", "1");
  make_folders(folder.path() + "/sub/deep");
  write_file_atomic(folder.path() + "/sub/deep/b", "2");
  EXPECT_FALSE(is_folder(path("out")));
  folder.commit();
  EXPECT_EQ(folder.path(), path("out"));
  EXPECT_EQ(read_file(path("out/sub/deep/b")), "2");
  EXPECT_EQ(entries(), 1);
}

TEST_F(FolderTest, VanishesWithoutCommit) {
  {
    AtomicFolder folder(path("out"));
    write_file_atomic(folder.path() + "/a", "1");
    EXPECT_EQ(entries(), 1);
  }
  EXPECT_EQ(entries(), 0);
}

TEST_F(FolderTest, ReplacesOnlyWhenAsked) {
  make_folders(path("out/old"));
  EXPECT_EQ(message_of(ErrorKind::io, [&] { AtomicFolder{path("out")}; }),
            path("out") + " already exists; remove it or choose another name");
  AtomicFolder folder(path("out"), AtomicFolder::Existing::replace);
  write_file_atomic(folder.path() + "/new", "1");
  EXPECT_TRUE(is_folder(path("out/old")));
  folder.commit();
  EXPECT_FALSE(is_folder(path("out/old")));
  EXPECT_TRUE(is_file(path("out/new")));
  EXPECT_EQ(entries(), 1);
}

TEST_F(FolderTest, ATargetThatAppearsMeanwhileIsKept) {
  AtomicFolder folder(path("out"));
  make_folders(path("out"));
  EXPECT_THAT(message_of(ErrorKind::io, [&] { folder.commit(); }), HasSubstr("already exists"));
  EXPECT_TRUE(is_folder(path("out")));
}

TEST_F(FolderTest, ListsSortedWithoutFollowingLinks) {
  make_folders(path("f/b"));
  write_file_atomic(path("f/b/x"), "123");
  write_file_atomic(path("f/a.txt"), "");
  std::filesystem::create_directory_symlink("/", path("f/root"));
  std::vector<std::string> names;
  for (const TreeEntry& entry : list_tree(path("f")))
    names.push_back(entry.name + ":" + std::to_string(static_cast<int>(entry.kind)) + ":" + std::to_string(entry.bytes));
  EXPECT_THAT(names, ElementsAre("a.txt:0:0", "b:1:0", "b/x:0:3", "root:2:0"));
  message_of(ErrorKind::not_found, [&] { list_tree(path("absent")); });
}

TEST_F(FolderTest, RemoveTreeDoesNotFollowLinks) {
  make_folders(path("keep"));
  write_file_atomic(path("keep/x"), "1");
  make_folders(path("gone"));
  std::filesystem::create_directory_symlink(path("keep"), path("gone/link"));
  remove_tree(path("gone"));
  remove_tree(path("gone"));
  EXPECT_FALSE(is_folder(path("gone")));
  EXPECT_TRUE(is_file(path("keep/x")));
}

TEST_F(FolderTest, MakeFoldersSaysWhy) {
  write_file_atomic(path("file"), "");
  EXPECT_THAT(message_of(ErrorKind::io, [&] { make_folders(path("file/sub")); }), HasSubstr("file/sub (folder): "));
}

TEST_F(FolderTest, LeftoversOfTheDeadAreRemovedAndOthersStay) {
  const pid_t child = ::fork();
  if (child == 0) {  // dies with a file and a folder half written
    AtomicFolder folder(path("model-1"));
    write_file_atomic(folder.path() + "/x", "1");
    AtomicFile file(path("weights"));
    file.write("part");
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(entries(), 2);
  const AtomicFile mine(path("mine"));  // of a living process
  for (const char* name : {".tmp-", ".tmp-x", ".tmp-x-host-1-", "tmp-x-host-1-2", "plain", ".tmp-x-elsewhere-999999-0"})
    write_file_atomic(path(name), "");
  EXPECT_EQ(entries(), 9);
  EXPECT_EQ(remove_leftovers(root_), 2);
  EXPECT_EQ(entries(), 7);
  std::filesystem::last_write_time(path(".tmp-x-elsewhere-999999-0"),
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  EXPECT_EQ(remove_leftovers(root_), 1);
  EXPECT_EQ(remove_leftovers(path("absent")), 0);
}

TEST_F(FolderTest, OneWriterHoldsAFolder) {
  {
    FolderLock first(path(""), "writer");
    const FolderLock moved(std::move(first));
    EXPECT_THAT(message_of(ErrorKind::io, [&] { const FolderLock second(path(""), "writer"); }), HasSubstr("in use by another writer"));
  }
  const FolderLock next(path(""), "writer");
  EXPECT_EQ(entries(), 0) << "no file is left";
  message_of(ErrorKind::not_found, [&] { const FolderLock lock(path("absent"), "writer"); });
}

}  // namespace
}  // namespace muster::storage
