#include "attune/base/parsed_number.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

TEST(ParsedNumber, IsWholeText) {
  EXPECT_EQ(parsed_number("-12"), -12);
  EXPECT_EQ(parsed_number("99999999999999999999"), INT64_MAX);
  for (const char* text : {"", "1.5", "1 ", " 1", "one"}) EXPECT_EQ(parsed_number(text), std::nullopt) << text;
}

TEST(ParsedReal, IsAFiniteNumber) {
  EXPECT_EQ(parsed_real("3.8"), 3.8F);
  EXPECT_EQ(parsed_real("-12"), -12);
  EXPECT_EQ(parsed_real("1e-3"), 0.001F);
  EXPECT_EQ(parsed_real("1e-60"), 0);
  for (const char* text :
       {"", "nan", "inf", "-infinity", "1e39", "1e999", "3,8", "3.8 ", " 3.8", "--1", "0x1p3", "good"})
    EXPECT_EQ(parsed_real(text), std::nullopt) << text;
}

}  // namespace
}  // namespace attune
