#include "attune/demo/marks.h"

#include <algorithm>

namespace attune::grammar {
namespace {

constexpr char kBegin = '\x01', kEnd = '\x02';  // around a mark

// The words of a text with their marks; one space between two words.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::string mark_text(std::string_view mark) {
  return kBegin + std::string(mark) + kEnd;
}

std::vector<std::string_view> marks_of(std::string_view word) {
  std::vector<std::string_view> marks;
  for (size_t begin = word.find(kBegin); begin != std::string_view::npos; begin = word.find(kBegin, begin + 1))
    marks.push_back(word.substr(begin + 1, word.find(kEnd, begin) - begin - 1));
  return marks;
}

}  // namespace

std::string marked(std::string_view text, std::string_view mark) {
  std::string result;
  for (const std::string_view word : words_of(text)) {
    if (!result.empty()) result += ' ';
    result.append(word).append(mark_text(mark));
  }
  return result;
}

std::string first_marked(std::string_view text, std::string_view mark) {
  if (text.empty()) return "";
  const size_t end = std::min(text.find(' '), text.size());
  return std::string(text.substr(0, end)).append(mark_text(mark)).append(text.substr(end));
}

std::string scoped(char scope, std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == kBegin) result += scope;
  }
  return result;
}

bool has_marks(std::string_view text) {
  return text.find(kBegin) != std::string_view::npos;
}

std::string without_marks(std::string_view text) {
  std::string result;
  bool inside = false;
  for (const char c : text) {
    if (c == kBegin) inside = true;
    if (!inside) result += c;
    if (c == kEnd) inside = false;
  }
  return result;
}

FirstWord first_word(std::string_view text) {
  const size_t end = std::min(text.find(' '), text.size());
  const size_t marks = std::min(text.find(kBegin), end);
  return {.word = text.substr(0, marks), .marks = text.substr(marks, end - marks), .rest = text.substr(end)};
}

std::vector<std::pair<int32_t, int32_t>> linked_words(std::string_view source, std::string_view target) {
  const std::vector<std::string_view> sources = words_of(source), targets = words_of(target);
  std::vector<std::pair<int32_t, int32_t>> links;
  for (size_t s = 0; s < sources.size(); ++s) {
    const std::vector<std::string_view> marks = marks_of(sources[s]);
    for (size_t t = 0; t < targets.size(); ++t) {
      const std::vector<std::string_view> others = marks_of(targets[t]);
      if (std::ranges::find_first_of(marks, others) != marks.end())
        links.emplace_back(static_cast<int32_t>(s), static_cast<int32_t>(t));
    }
  }
  return links;
}

}  // namespace attune::grammar
