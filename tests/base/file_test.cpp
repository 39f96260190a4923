#include "attune/base/file.h"
#include "attune/base/fail.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "attune/base/parallel.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

TEST(File, ReadsAndReplacesWhole) {
  const TemporaryFolder folder;
  write_file(folder / "a", "one");
  EXPECT_EQ(read_file(folder / "a"), "one");
  write_file(folder / "a", "two and more");
  EXPECT_EQ(read_file(folder / "a"), "two and more");
}

TEST(File, WhatIsNotCommittedChangesNothing) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write("new");
  }
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()),
            1);
}

TEST(File, ErrorsNameTheFile) {
  const TemporaryFolder folder;
  const std::string missing = (folder / "missing").string();
  EXPECT_EQ(message_of<FileError>([&] { read_file(missing); }),
            "cannot open " + missing + ": No such file or directory");
  EXPECT_EQ(message_of<FileError>([&] { read_file(folder.path()); }),
            "cannot read " + folder.path().string() + ": it is a folder");
  write_file(folder / "a", "0123456789");
  EXPECT_EQ(message_of<FileError>([&] { read_file(folder / "a", 9); }),
            (folder / "a").string() + ": has 10 bytes, at most 9 are accepted here");
  EXPECT_THROW(write_file(folder / "a" / "below", "x"), FileError);  // a file is no folder
  EXPECT_THROW(make_directories(folder / "a" / "below"), FileError);
}

TEST(File, WritingToAMappingLeavesTheFileAlone) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  const MappedFile mapped(folder / "a", FileAccess::copy_on_write), other(folder / "a");
  mapped.writable()[0] = std::byte{'c'};
  EXPECT_EQ(static_cast<char>(mapped.bytes()[0]), 'c');
  EXPECT_EQ(static_cast<char>(other.bytes()[0]), 'o');
  EXPECT_EQ(read_file(folder / "a"), "old");
  write_file(folder / "a", "new and longer");  // by rename: what is mapped is the file that was there
  EXPECT_EQ(other.bytes().size(), 3u);
  EXPECT_EQ(static_cast<char>(other.bytes()[2]), 'd');
}

TEST(File, DevicesAndPipesAreRefused) {
  EXPECT_THROW(read_file("/dev/zero"), FileError);
  EXPECT_THROW(MappedFile("/dev/null"), FileError);
}

TEST(File, DevicesAndPipesAreWrittenToAndStay) {
  write_file("/dev/null", "x");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(message_of<FileError>([] { write_file("/dev/full", "x"); }),
            "cannot write /dev/full: No space left on device");
  const TemporaryFolder folder;
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDWR | O_CLOEXEC);  // for writing too: else the call waits for a writer
  ASSERT_GE(reader, 0);
  write_file(pipe, "new");
  std::string text(8, ' ');
  const ssize_t bytes = ::read(reader, text.data(), text.size());
  ::close(reader);
  EXPECT_EQ(text.substr(0, static_cast<size_t>(std::max<ssize_t>(bytes, 0))), "new");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(File, WritingReplacesNoFolderAndFollowsLinks) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_file(folder.path(), "x"), FileError);
  write_file(folder / "target", "old");
  std::filesystem::create_symlink(folder / "target", folder / "link");
  write_file(folder / "link", "new");
  EXPECT_EQ(read_file(folder / "target"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
}

// As a shell does, also through several links and relative ones.
TEST(File, WritingToALinkMakesTheFileThatItLeadsTo) {
  const TemporaryFolder folder;
  make_directories(folder / "below");
  std::filesystem::create_symlink("below/second", folder / "first");
  std::filesystem::create_symlink("../new", folder / "below" / "second");
  write_file(folder / "first", "text");
  EXPECT_EQ(read_file(folder / "new"), "text");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "first"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "below" / "second"));
  std::filesystem::create_symlink("missing/new", folder / "nowhere");
  EXPECT_EQ(message_of<FileError>([&] { write_file(folder / "nowhere", "text"); }),
            "cannot write " + (folder / "missing" / "new").string() + ": No such file or directory");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "nowhere"));
}

TEST(File, WhatNamesNoFileIsNotWritten) {
  const TemporaryFolder folder;
  const std::string loop = (folder / "loop").string();
  std::filesystem::create_symlink("loop", loop);
  EXPECT_EQ(message_of<FileError>([&] { write_file(loop, "text"); }),
            "cannot write " + loop + ": Too many levels of symbolic links");
  EXPECT_EQ(message_of<FileError>([] { write_file("", "text"); }), "cannot write \"\": it names no file");
}

// By any name: a shell's `>> log` appends to a file that a rename would replace.
TEST(File, WritingReplacesNoStandardStream) {
  const TemporaryFolder folder;
  write_file(folder / "log", "old");
  std::filesystem::create_symlink(folder / "log", folder / "link");
  const int before = ::dup(STDERR_FILENO), log = ::open((folder / "log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  ASSERT_GE(before, 0);
  ASSERT_GE(log, 0);
  ASSERT_EQ(::dup2(log, STDERR_FILENO), STDERR_FILENO);
  std::vector<std::string> messages;
  for (const char* name : {"log", "link"})
    messages.push_back(message_of<FileError>([&] { write_file(folder / name, "new"); }));
  ASSERT_EQ(::dup2(before, STDERR_FILENO), STDERR_FILENO);
  ::close(before);
  ::close(log);
  for (const std::string& message : messages) EXPECT_NE(message.find("it is standard error"), std::string::npos);
  EXPECT_EQ(read_file(folder / "log"), "old");
  EXPECT_EQ(message_of<FileError>([] { write_file("-", "new"); }),
            "cannot write -: it is standard output, and a file is replaced");
  write_file(folder / "log", "new");
  EXPECT_EQ(read_file(folder / "log"), "new");
}

TEST(File, KeepsThePermissionsOfWhatItReplaces) {
  const TemporaryFolder folder;
  const auto mode = [&] {
    struct stat status {};
    EXPECT_EQ(::stat((folder / "a").c_str(), &status), 0);
    return status.st_mode & 0777;
  };
  const mode_t before = ::umask(027);
  write_file(folder / "a", "new");
  ::umask(before);
  EXPECT_EQ(mode(), 0640u);
  for (const mode_t kept : {0600, 0666}) {
    ASSERT_EQ(::chmod((folder / "a").c_str(), kept), 0);
    write_file(folder / "a", "other");
    EXPECT_EQ(mode(), kept);
  }
}

TEST(File, MapsTheWholeFile) {
  const TemporaryFolder folder;
  write_file(folder / "a", "abc");
  const MappedFile mapped(folder / "a");
  EXPECT_EQ(mapped.bytes().size(), 3u);
  EXPECT_EQ(static_cast<char>(mapped.bytes()[2]), 'c');
  write_file(folder / "empty", "");
  EXPECT_TRUE(MappedFile(folder / "empty").bytes().empty());
}

TEST(File, ReleasedPagesAreReadAgain) {
  const TemporaryFolder folder;
  const std::string text(1'000'000, 'x');
  write_file(folder / "a", text);
  const MappedFile mapped(folder / "a", FileAccess::copy_on_write);
  std::fill_n(mapped.writable(), text.size(), std::byte{'y'});
  mapped.release(mapped.bytes().subspan(1, 500'000));
  const auto at = [&](size_t i) { return static_cast<char>(mapped.bytes()[i]); };
  EXPECT_EQ(at(0), 'y');  // its page has a byte outside of the part
  EXPECT_EQ(at(400'000), 'x');
  EXPECT_EQ(at(999'999), 'y');
  const std::string other(300'000, 'z');
  mapped.release(std::as_bytes(std::span(other)));  // no part of the file
  EXPECT_EQ(other, std::string(300'000, 'z'));
}

TEST(Parallel, CoversEveryElementOnce) {
  for (const int64_t size : {0, 1, 7, 1000}) {
    std::vector<int> hits(static_cast<size_t>(size));
    parallel_for(size, 3, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
    });
    for (const int h : hits) EXPECT_EQ(h, 1);
  }
}

TEST(Parallel, ExceptionsLeaveTheRegion) {
  EXPECT_EQ(message_of<DataError>([] {
              parallel_for(100, 1, [](int64_t i, int64_t) {
                if (i == 57) fail<DataError>("at {}", i);
              });
            }),
            "at 57");
}

}  // namespace
}  // namespace attune
