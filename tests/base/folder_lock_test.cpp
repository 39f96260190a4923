#include "attune/base/folder_lock.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "attune/base/file.h"
#include "tests/support/errors.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(FolderLock, IsForOneAtATimeAndSaysWhoHasIt) {
  const TemporaryFolder folder;
  {
    const FolderLock lock(folder.path());
    EXPECT_THAT(
        message_of<FileError>([&] { FolderLock(folder.path()); }),
        AllOf(HasSubstr(folder.path().string()), HasSubstr(fmt::format("in use by process {} on ", ::getpid()))));
  }
  const FolderLock again(folder.path());
}

TEST(FolderLock, HoldsWithoutItsFile) {
  const TemporaryFolder folder;
  {
    const FolderLock lock(folder.path());
    std::filesystem::remove(folder / kLockFile);
    EXPECT_THAT(message_of<FileError>([&] { FolderLock(folder.path()); }),
                AllOf(HasSubstr(folder.path().string()), HasSubstr("run.lock was removed")));
    EXPECT_FALSE(std::filesystem::exists(folder / kLockFile));
  }
  const FolderLock again(folder.path());
}

TEST(FolderLock, KnowsWhetherItHasItsFolder) {
  const TemporaryFolder outer;
  const std::filesystem::path folder = outer / "run";
  std::filesystem::create_directory(folder);
  const FolderLock lock(folder);
  std::filesystem::remove(folder / kLockFile);
  EXPECT_TRUE(lock.has_folder());
  std::filesystem::rename(folder, outer / "renamed");
  EXPECT_FALSE(lock.has_folder());
  std::filesystem::create_directory(folder);
  EXPECT_FALSE(lock.has_folder());
  std::filesystem::remove(folder);
  std::filesystem::create_directory_symlink("renamed", folder);
  EXPECT_TRUE(lock.has_folder());
}

TEST(FolderLock, LeavesNoFileThatItCannotWrite) {
  const TemporaryFolder folder;
  const FileSizeLimit full(0);
  EXPECT_THAT(message_of<FileError>([&] { FolderLock(folder.path()); }), HasSubstr("run.lock: File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FolderLock, NeverFollowsALink) {
  const TemporaryFolder folder;
  write_file(folder / "precious", "text");
  std::filesystem::create_symlink(folder / "precious", folder / kLockFile);
  EXPECT_THROW(FolderLock(folder.path()), FileError);
  EXPECT_EQ(read_file(folder / "precious"), "text");
  EXPECT_THROW(FolderLock(folder / "missing"), FileError);
}

TEST(FolderLock, ShowsNoControlCharacterOfALockFile) {
  const TemporaryFolder folder;
  const FolderLock lock(folder.path());
  std::filesystem::resize_file(folder / kLockFile, 0);
  write_file(folder / "text", "\x1b[2Jgone\n");
  std::filesystem::copy_file(folder / "text", folder / kLockFile, std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(message_of<FileError>([&] { FolderLock(folder.path()); }), HasSubstr("?[2Jgone"));
}

}  // namespace
}  // namespace attune
