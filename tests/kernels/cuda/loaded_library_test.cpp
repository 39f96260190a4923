#include "attune/kernels/cuda/runtime/loaded_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune::cuda {
namespace {

using testing::HasSubstr;

// The first folder has a file that is no library; the last one has nothing.
TEST(LoadedLibrary, SaysWhatFailedInEachPlace) {
  const TemporaryFolder folder;
  const std::string broken = folder / "libattune_none.so.1";
  std::ofstream(broken) << std::string(1000, 'x');
  const std::string message = message_of<DeviceError>([&] {
    LoadedLibrary("libattune_none.so.1", {folder.path().c_str(), "/nowhere"});
  });
  EXPECT_THAT(message, HasSubstr("libattune_none.so.1: cannot be loaded: libattune_none.so.1: cannot open"));
  EXPECT_THAT(message, HasSubstr("; " + broken + ": invalid ELF header; /nowhere/libattune_none.so.1: cannot open"));
  EXPECT_THAT(message, HasSubstr("; LD_LIBRARY_PATH can name its folder"));
}

TEST(LoadedLibrary, FindsFunctions) {
  const LoadedLibrary math("libm.so.6", {"/nowhere"});
  double (*cosine)(double) = nullptr;
  math.find(cosine, "cos");
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(message_of<DeviceError>([&] { math.find(cosine, "none"); }), "libm.so.6: has no function none");
}

}  // namespace
}  // namespace attune::cuda
