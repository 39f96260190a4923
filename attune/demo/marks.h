#pragma once
// Which word of a sentence became which word of its translation. While phrases and clauses are put together, words
// carry marks. A mark is text behind the word that it belongs to, between two bytes that occur in no word. Two words of
// the two languages that have a mark in common are linked.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::grammar {

/// Adds the mark to every word of a text.
std::string marked(std::string_view text, std::string_view mark);

/// Adds the mark to the first word alone.
std::string first_marked(std::string_view text, std::string_view mark);

/// Puts a letter before every mark of a text, so that the marks of several phrases stay different in their clause.
std::string scoped(char scope, std::string_view text);

bool has_marks(std::string_view text);

/// The text without marks.
std::string without_marks(std::string_view text);

/// The first word without its marks, the marks, and the rest with the space before it.
struct FirstWord {
  std::string_view word, marks, rest;
};
FirstWord first_word(std::string_view text);

/// Each pair of a source and a target word with a common mark, counted from 0 and rising.
std::vector<std::pair<int32_t, int32_t>> linked_words(std::string_view source, std::string_view target);

}  // namespace attune::grammar
