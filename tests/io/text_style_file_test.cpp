#include "attune/io/text_style_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

TEST(TextStyleFile, ALinkThatLeadsNowhereIsAnError) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_source_text(folder.path()), std::nullopt);
  const std::filesystem::path link = folder / kSourceTextFile;
  std::filesystem::create_symlink("nowhere", link);
  EXPECT_EQ(message_of<FileError>([&] { read_source_text(folder.path()); }),
            "cannot open " + link.string() + ": No such file or directory");
}

}  // namespace
}  // namespace attune
