#pragma once
// Unicode as Hugging Face's `tokenizers` sees it. Its parts have different versions of Unicode, so each function below
// names the one that it follows: a newer or older one would give other tokens.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace attune::huggingface {

/// General categories, in the order of ICU's UCharCategory.
enum class Category : uint8_t {
  unassigned,
  uppercase_letter,
  lowercase_letter,
  titlecase_letter,
  modifier_letter,
  other_letter,
  nonspacing_mark,
  enclosing_mark,
  spacing_mark,
  decimal_number,
  letter_number,
  other_number,
  space_separator,
  line_separator,
  paragraph_separator,
  control,
  format,
  private_use,
  surrogate,
  dash_punctuation,
  start_punctuation,
  end_punctuation,
  connector_punctuation,
  other_punctuation,
  math_symbol,
  currency_symbol,
  modifier_symbol,
  other_symbol,
  initial_punctuation,
  final_punctuation,
};

inline constexpr char32_t kCodePoints = 0x110000;

/// What is known of each code point: the category in the low 5 bits, and the flags below.
namespace properties {
inline constexpr uint16_t category_bits = 0x1F;
inline constexpr uint16_t white_space = 1 << 5;
inline constexpr uint16_t word = 1 << 6;               // \w of Rust's regex
inline constexpr uint16_t punctuation = 1 << 7;        // Unicode 8, and what is punctuation in ASCII
inline constexpr uint16_t control = 1 << 8;            // Unicode 8: Cc, Cf and Co
inline constexpr uint16_t nonspacing_mark = 1 << 9;    // Unicode 8: Mn
inline constexpr uint16_t mark = 1 << 10;              // Unicode 9: M
inline constexpr uint16_t numeric = 1 << 11;           // Unicode 17: N
inline constexpr uint16_t grapheme_extend = 1 << 12;   // joins the character before it
inline constexpr uint16_t grapheme_control = 1 << 13;  // joins nothing
}  // namespace properties

/// The table of all code points, made at the first call; thread-safe.
const uint16_t* property_table();

/// The bit of a category; the letters, marks and numbers of Unicode 16, which property_table() has.
inline constexpr uint32_t mask_of(Category c) {
  return uint32_t{1} << static_cast<uint32_t>(c);
}
inline constexpr uint32_t kLetters = mask_of(Category::uppercase_letter) | mask_of(Category::lowercase_letter) |
                                     mask_of(Category::titlecase_letter) | mask_of(Category::modifier_letter) |
                                     mask_of(Category::other_letter);
inline constexpr uint32_t kMarks =
    mask_of(Category::nonspacing_mark) | mask_of(Category::enclosing_mark) | mask_of(Category::spacing_mark);
inline constexpr uint32_t kNumbers =
    mask_of(Category::decimal_number) | mask_of(Category::letter_number) | mask_of(Category::other_number);

/// The bytes of the character that this byte begins, in valid UTF-8.
inline size_t character_bytes(char first) {
  const auto byte = static_cast<uint8_t>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// The character at `at` of valid UTF-8; moves `at` behind it.
inline char32_t next_character(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<uint8_t>(text[at + i])); };
  const char32_t first = byte(0);
  if (first < 0x80) return ++at, first;
  char32_t value = 0;
  if (first < 0xE0) {
    value = (first & 0x1F) << 6 | (byte(1) & 0x3F);
    at += 2;
  } else if (first < 0xF0) {
    value = (first & 0xF) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    at += 3;
  } else {
    value = (first & 0x7) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    at += 4;
  }
  return value;
}

bool is_ascii(std::string_view text);

/// Returns valid UTF-8: U+FFFD replaces the bytes of each character that breaks off, and each other byte that is not
/// valid.
std::string with_replacements(std::string_view bytes);

enum class NormalizationForm { nfc, nfd, nfkc, nfkd };

/// The text in this form of Unicode 9. What was added later stays as it is. `result` is replaced.
void normalize(NormalizationForm form, std::string_view text, std::string& result);

/// Lower case of Unicode 17, character by character (a final sigma is not special). One becomes two: U+0130.
void append_lowercase(std::string& text, char32_t c);

/// The end of the grapheme cluster that begins at `at`, exact for clusters of less than 6 bytes; others may be cut.
size_t grapheme_end(std::string_view text, size_t at);

/// What script_of() returns for the space and for characters without a script in Unicode 9: they belong to any script.
inline constexpr int kAnyScript = -1;
/// A number for the script of a character in Unicode 9, or kAnyScript. Hiragana and Katakana count as Han.
int script_of(char32_t c);

}  // namespace attune::huggingface
