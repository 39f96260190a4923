#include "attune/base/replace_all.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

TEST(ReplaceAll, GoesFromLeftToRightOnce) {
  const auto replaced = [](std::string text, std::string_view from, std::string_view to) {
    replace_all(text, from, to);
    return text;
  };
  EXPECT_EQ(replaced("a&amp;amp;b&amp;", "&amp;", "&"), "a&amp;b&");
  EXPECT_EQ(replaced("aaa", "aa", "a"), "aa");
  EXPECT_EQ(replaced("abab", "ab", ""), "");
  EXPECT_EQ(replaced("abc", "x", "y"), "abc");
  EXPECT_EQ(replaced("abc", "", "y"), "abc");
  EXPECT_EQ(replaced("", "a", "y"), "");
}

}  // namespace
}  // namespace attune
