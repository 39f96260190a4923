#include "attune/base/ascii.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

TEST(Ascii, OnlyItsLettersBecomeSmall) {
  EXPECT_EQ(ascii_lowercase("@AZ[ az 09 \xC3\x89 \xC9"), "@az[ az 09 \xC3\x89 \xC9");
  EXPECT_EQ(ascii_lower('Q'), 'q');
}

}  // namespace
}  // namespace attune
