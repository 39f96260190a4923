#pragma once
// The characters of Unicode 15.1 and 16, with their categories: what ICU 72 does not know. A newer ICU has the same.

#include "attune/text/huggingface/unicode.h"

namespace attune::huggingface {

struct AssignedRange {
  char32_t first, last;
  Category category;
};

inline constexpr AssignedRange kUnicode16Characters[] = {
    {0x897, 0x897, Category::nonspacing_mark},       {0x1B4E, 0x1B4F, Category::other_punctuation},
    {0x1B7F, 0x1B7F, Category::other_punctuation},   {0x1C89, 0x1C89, Category::uppercase_letter},
    {0x1C8A, 0x1C8A, Category::lowercase_letter},    {0x2427, 0x2429, Category::other_symbol},
    {0x2FFC, 0x2FFF, Category::other_symbol},        {0x31E4, 0x31E5, Category::other_symbol},
    {0x31EF, 0x31EF, Category::other_symbol},        {0xA7CB, 0xA7CC, Category::uppercase_letter},
    {0xA7CD, 0xA7CD, Category::lowercase_letter},    {0xA7DA, 0xA7DA, Category::uppercase_letter},
    {0xA7DB, 0xA7DB, Category::lowercase_letter},    {0xA7DC, 0xA7DC, Category::uppercase_letter},
    {0x105C0, 0x105F3, Category::other_letter},      {0x10D40, 0x10D49, Category::decimal_number},
    {0x10D4A, 0x10D4D, Category::other_letter},      {0x10D4E, 0x10D4E, Category::modifier_letter},
    {0x10D4F, 0x10D4F, Category::other_letter},      {0x10D50, 0x10D65, Category::uppercase_letter},
    {0x10D69, 0x10D6D, Category::nonspacing_mark},   {0x10D6E, 0x10D6E, Category::dash_punctuation},
    {0x10D6F, 0x10D6F, Category::modifier_letter},   {0x10D70, 0x10D85, Category::lowercase_letter},
    {0x10D8E, 0x10D8F, Category::math_symbol},       {0x10EC2, 0x10EC4, Category::other_letter},
    {0x10EFC, 0x10EFC, Category::nonspacing_mark},   {0x11380, 0x11389, Category::other_letter},
    {0x1138B, 0x1138B, Category::other_letter},      {0x1138E, 0x1138E, Category::other_letter},
    {0x11390, 0x113B5, Category::other_letter},      {0x113B7, 0x113B7, Category::other_letter},
    {0x113B8, 0x113BA, Category::spacing_mark},      {0x113BB, 0x113C0, Category::nonspacing_mark},
    {0x113C2, 0x113C2, Category::spacing_mark},      {0x113C5, 0x113C5, Category::spacing_mark},
    {0x113C7, 0x113CA, Category::spacing_mark},      {0x113CC, 0x113CD, Category::spacing_mark},
    {0x113CE, 0x113CE, Category::nonspacing_mark},   {0x113CF, 0x113CF, Category::spacing_mark},
    {0x113D0, 0x113D0, Category::nonspacing_mark},   {0x113D1, 0x113D1, Category::other_letter},
    {0x113D2, 0x113D2, Category::nonspacing_mark},   {0x113D3, 0x113D3, Category::other_letter},
    {0x113D4, 0x113D5, Category::other_punctuation}, {0x113D7, 0x113D8, Category::other_punctuation},
    {0x113E1, 0x113E2, Category::nonspacing_mark},   {0x116D0, 0x116E3, Category::decimal_number},
    {0x1171E, 0x1171E, Category::spacing_mark},      {0x11BC0, 0x11BE0, Category::other_letter},
    {0x11BE1, 0x11BE1, Category::other_punctuation}, {0x11BF0, 0x11BF9, Category::decimal_number},
    {0x11F5A, 0x11F5A, Category::nonspacing_mark},   {0x13460, 0x143FA, Category::other_letter},
    {0x16100, 0x1611D, Category::other_letter},      {0x1611E, 0x16129, Category::nonspacing_mark},
    {0x1612A, 0x1612C, Category::spacing_mark},      {0x1612D, 0x1612F, Category::nonspacing_mark},
    {0x16130, 0x16139, Category::decimal_number},    {0x16D40, 0x16D42, Category::modifier_letter},
    {0x16D43, 0x16D6A, Category::other_letter},      {0x16D6B, 0x16D6C, Category::modifier_letter},
    {0x16D6D, 0x16D6F, Category::other_punctuation}, {0x16D70, 0x16D79, Category::decimal_number},
    {0x18CFF, 0x18CFF, Category::other_letter},      {0x1CC00, 0x1CCEF, Category::other_symbol},
    {0x1CCF0, 0x1CCF9, Category::decimal_number},    {0x1CD00, 0x1CEB3, Category::other_symbol},
    {0x1E5D0, 0x1E5ED, Category::other_letter},      {0x1E5EE, 0x1E5EF, Category::nonspacing_mark},
    {0x1E5F0, 0x1E5F0, Category::other_letter},      {0x1E5F1, 0x1E5FA, Category::decimal_number},
    {0x1E5FF, 0x1E5FF, Category::other_punctuation}, {0x1F8B2, 0x1F8BB, Category::other_symbol},
    {0x1F8C0, 0x1F8C1, Category::other_symbol},      {0x1FA89, 0x1FA89, Category::other_symbol},
    {0x1FA8F, 0x1FA8F, Category::other_symbol},      {0x1FABE, 0x1FABE, Category::other_symbol},
    {0x1FAC6, 0x1FAC6, Category::other_symbol},      {0x1FADC, 0x1FADC, Category::other_symbol},
    {0x1FADF, 0x1FADF, Category::other_symbol},      {0x1FAE9, 0x1FAE9, Category::other_symbol},
    {0x1FBCB, 0x1FBEF, Category::other_symbol},      {0x2EBF0, 0x2EE5D, Category::other_letter},
};

}  // namespace attune::huggingface
