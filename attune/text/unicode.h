#pragma once
// The little of Unicode that metrics and tokenizers need: code points, white space, lower case. All of it is as in
// Python's `str`, because the metrics reproduce the figures of sacreBLEU, which is written in Python.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attune {

inline constexpr std::string_view kMetaspace = "\u2581";            // stands for a space in SentencePiece's tokens
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // may stand at the start of a text in UTF-8

/// Whether a byte of UTF-8 is inside a character and does not begin one.
inline bool continues_character(char byte) {
  return (static_cast<uint8_t>(byte) & 0xC0) == 0x80;
}

/// Returns the code point at `position` and moves `position` behind it. A byte that is not valid UTF-8 yields 0xDC00 +
/// byte (a lone surrogate, as Python's "surrogateescape"), so that every text is accepted and different bytes stay
/// different. `position` is below text.size().
char32_t next_code_point(std::string_view text, std::size_t& position);

/// Appends the UTF-8 of one code point, the inverse of `next_code_point`.
void append_utf8(std::string& text, char32_t code_point);

/// Whether Python's `str.split()` splits here: Unicode's White_Space and the separators U+001C to U+001F.
bool is_space(char32_t code_point);

/// The words between white space, as views into `text`; none of them is empty.
std::vector<std::string_view> split_words(std::string_view text);

/// Lower case as of Unicode 14: the simple mappings, except that U+0130 becomes two code points and a capital sigma at
/// the end of a word the final sigma.
std::string lowercase(std::string_view text);

}  // namespace attune
