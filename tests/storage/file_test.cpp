// Reading, mapping and writing one file.
#include "storage/file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "temporary.h"

namespace muster::storage {
namespace {

using testing::HasSubstr;
using FileTest = TemporaryFolder;

TEST_F(FileTest, WritesReadsAndMapsTheSameBytes) {
  const std::string content("a\0b\r\n\xff", 6);
  write_file_atomic(path("x"), content);
  EXPECT_EQ(read_file(path("x")), content);
  MappedFile mapped(path("x"));
  MappedFile moved = std::move(mapped);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(moved.bytes().data()), moved.bytes().size()), content);
  write_file_atomic(path("empty"), "");
  EXPECT_EQ(read_file(path("empty")), "");
  EXPECT_TRUE(MappedFile(path("empty")).bytes().empty());
  EXPECT_EQ(entries(), 2);
}

TEST_F(FileTest, ReadErrorsSayWhatAndWhere) {
  EXPECT_EQ(message_of(ErrorKind::not_found, [&] { read_file(path("no")); }), path("no") + ": no such file; check the path");
  EXPECT_THAT(message_of(ErrorKind::io, [&] { read_file(root_); }), HasSubstr("it is a folder"));
  EXPECT_THAT(message_of(ErrorKind::io, [&] { MappedFile{root_}; }), HasSubstr("it is a folder"));
  EXPECT_THAT(message_of(ErrorKind::io, [&] { MappedFile{"/dev/null"}; }), HasSubstr("not a regular file"));
  write_file_atomic(path("ten"), "0123456789");
  EXPECT_EQ(read_file(path("ten"), 10), "0123456789");
  EXPECT_THAT(message_of(ErrorKind::too_large, [&] { read_file(path("ten"), 9); }), HasSubstr("limit of 9 bytes"));
  EXPECT_THAT(message_of(ErrorKind::too_large, [&] { read_file("/dev/zero", 1 << 20); }), HasSubstr("limit"));
}

TEST_F(FileTest, ReadsPipesToTheirEnd) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const std::string content(300'000, 'x');
  const pid_t child = ::fork();
  if (child == 0) {
    std::ofstream(path("pipe")) << content;
    ::_exit(0);
  }
  EXPECT_EQ(read_file(path("pipe")), content);
  ::waitpid(child, nullptr, 0);
}

TEST_F(FileTest, NothingIsLeftWithoutCommitAndTheOldContentStays) {
  write_file_atomic(path("x"), "old");
  {
    AtomicFile file(path("x"));
    file.write(std::string(3 << 20, 'n'));
    EXPECT_EQ(read_file(path("x")), "old");
    EXPECT_EQ(entries(), 2);
  }
  EXPECT_EQ(read_file(path("x")), "old");
  EXPECT_EQ(entries(), 1);
}

TEST_F(FileTest, LargeAndSmallWritesKeepTheirOrder) {
  AtomicFile file(path("x"));
  std::string expected;
  for (int i = 0; i < 40; ++i) {
    const std::string piece(i % 7 == 0 ? 1 << 20 : i * 1000, static_cast<char>('a' + i % 26));
    file.write(piece);
    expected += piece;
  }
  file.commit();
  EXPECT_EQ(read_file(path("x")), expected);
}

TEST_F(FileTest, ALinkStaysALink) {
  write_file_atomic(path("real"), "old");
  std::filesystem::create_symlink("real", path("link"));
  write_file_atomic(path("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("real")), "new");
}

TEST_F(FileTest, DevicesAreWrittenDirectlyAndNeverReplaced) {
  write_file_atomic("/dev/null", "gone");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  const std::string full = message_of(ErrorKind::io, [&] { write_file_atomic("/dev/full", "x", "weights"); });
  EXPECT_EQ(full, "cannot write /dev/full (weights): No space left on device; free space there or choose another folder");
}

TEST_F(FileTest, WriteErrorsSayWhatToDo) {
  EXPECT_THAT(message_of(ErrorKind::io, [&] { write_file_atomic(path("no/x"), "", "report"); }),
              HasSubstr("no/x (report): No such file or directory; create its folder first"));
  EXPECT_THAT(message_of(ErrorKind::io, [&] { write_file_atomic(root_, ""); }), HasSubstr("it names a folder"));
  EXPECT_THAT(message_of(ErrorKind::io, [&] { write_file_atomic("", ""); }), HasSubstr("give a file name"));
  EXPECT_THAT(message_of(ErrorKind::io, [&] { write_file_atomic(path(std::string(300, 'n')), ""); }), HasSubstr("choose a shorter name"));
  const std::string longest(255, 'n');
  write_file_atomic(path(longest), "fits");
  EXPECT_EQ(read_file(path(longest)), "fits");
}

/// A full disk in the middle of a write, played by the limit on file sizes, in a child because the limit is of the process.
TEST_F(FileTest, ADiskThatFillsUpLeavesTheOldFileAndNoPart) {
  write_file_atomic(path("x"), "old");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{2 << 20, 2 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int code = 1;
    try {
      write_file_atomic(path("x"), std::string(3 << 20, 'n'), "weights");
    } catch (const Error& error) {
      code = error.kind() == ErrorKind::io &&
                     std::string(error.what()).find("(weights): File too large; raise the file size limit") != std::string::npos
                 ? 0
                 : 2;
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_file(path("x")), "old");
  EXPECT_EQ(entries(), 1);
}

}  // namespace
}  // namespace muster::storage
