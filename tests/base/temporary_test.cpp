#include "attune/base/temporary.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "attune/base/atomic_folder.h"
#include "attune/base/file.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

constexpr const char* kLeft = "a.0123456789abcdef.tmp";  // as a killed process leaves it

TEST(Temporary, NamesOfOneTargetDiffer) {
  const TemporaryFolder folder;
  const TemporaryEntry one = make_temporary_file(folder / "a", 0666), other = make_temporary_file(folder / "a", 0666);
  EXPECT_NE(one.path, other.path);
  EXPECT_EQ(names_in(folder.path()).size(), 2u);
}

TEST(Temporary, WhatAKilledProcessLeftIsRemovedAndWhatIsAtWorkStays) {
  const TemporaryFolder folder;
  write_file(folder / kLeft, "half");
  fs::create_directories(folder / "b.fedcba9876543210.tmp" / "inside");
  for (const char* other : {"a.tmp", "a.1234.tmp", ".0123456789abcdef.tmp", "notes.0123456789ABCDEF.tmp"})
    write_file(folder / other, "");
  fs::create_symlink(folder / "a.tmp", folder / "c.0123456789abcdef.tmp");
  const TemporaryEntry file = make_temporary_file(folder / "a", 0666), made = make_temporary_folder(folder / "b");
  remove_leftovers(folder.path(), "a");
  EXPECT_FALSE(fs::exists(folder / kLeft));
  EXPECT_TRUE(fs::exists(folder / "b.fedcba9876543210.tmp")) << "is of another name";
  remove_leftovers(folder.path());
  EXPECT_FALSE(fs::exists(folder / "b.fedcba9876543210.tmp"));
  EXPECT_EQ(names_in(folder.path()).size(), 7u) << "four files, a link, and two entries at work";
  EXPECT_TRUE(fs::exists(file.path) && fs::exists(made.path));
  remove_leftovers(folder / "missing");
}

TEST(Temporary, TheNextWriteOfAFileOrFolderTidiesUp) {
  const TemporaryFolder folder;
  write_file(folder / kLeft, "half");
  write_file(folder / "a", "whole");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
  fs::create_directory(folder / "f.0123456789abcdef.tmp");
  AtomicFolder written(folder / "f");
  write_file(written.temporary() / "x", "x");
  written.commit();
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"a", "f"}));
}

TEST(Temporary, AFolderThatIsWrittenHasANameOfItsOwn) {
  const TemporaryFolder folder;
  for (const char* root : {"/", "//"})
    EXPECT_EQ(message_of<FileError>([&] { AtomicFolder written(root); }),
              std::string(root) + ": is there already; remove it or choose another folder");
  const std::string dot = (folder / "new" / ".").string();
  for (const std::string& path : {std::string(), dot})
    EXPECT_EQ(message_of<FileError>([&] { AtomicFolder written(path); }),
              "\"" + path + "\" is no name for a folder that is written");
  EXPECT_TRUE(names_in(folder.path()).empty());
  AtomicFolder written(folder / "new///");
  written.commit();
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"new"});
}

}  // namespace
}  // namespace attune
