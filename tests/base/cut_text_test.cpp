#include "attune/base/cut_text.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

TEST(CutText, CharactersStayWhole) {
  EXPECT_EQ(cut_text("dog", 3), "dog");
  EXPECT_EQ(cut_text("dog", 2), "do");
  EXPECT_EQ(cut_text("aäb", 1), "a");
  EXPECT_EQ(cut_text("aäb", 2), "a");
  EXPECT_EQ(cut_text("aäb", 3), "aä");
  EXPECT_EQ(cut_text("a\U0001F600", 4), "a");
  EXPECT_EQ(cut_text("\xBF\xBF\xBF", 2), "") << "no UTF-8";
}

}  // namespace
}  // namespace attune
