#include "attune/text/huggingface/scanners.h"

#include "attune/base/ascii.h"
#include "attune/text/huggingface/unicode.h"

namespace attune::huggingface {
namespace {

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Sets of characters, as bits of their categories, and white space.
constexpr uint32_t kUpper = mask_of(Category::uppercase_letter) | mask_of(Category::titlecase_letter) |
                            mask_of(Category::modifier_letter) | mask_of(Category::other_letter) | kMarks;
constexpr uint32_t kLower =
    mask_of(Category::lowercase_letter) | mask_of(Category::modifier_letter) | mask_of(Category::other_letter) | kMarks;

/// Reads a text from left to right. Each function takes a place and returns the place behind what it read there, the
/// same place for nothing.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), table_(property_table()) {}

  bool at_end(size_t at) const { return at >= text_.size(); }
  char byte(size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  size_t behind(size_t at) const { return at + character_bytes(text_[at]); }

  bool is(uint32_t mask, size_t at) const { return !at_end(at) && (mask_at(at) & mask) != 0; }
  bool is_space(size_t at) const { return !at_end(at) && (properties_at(at) & properties::white_space) != 0; }
  bool is_other(size_t at) const {  // [^\s\p{L}\p{N}]
    if (at_end(at)) return false;
    const uint16_t found = properties_at(at);
    return !(found & properties::white_space) &&
           !(uint32_t{1} << (found & properties::category_bits) & (kLetters | kNumbers));
  }
  bool is_line_end(size_t at) const { return byte(at) == '\n' || byte(at) == '\r'; }

  size_t run(uint32_t mask, size_t at) const {
    while (is(mask, at)) at = behind(at);
    return at;
  }
  size_t run_of_others(size_t at) const {
    while (is_other(at)) at = behind(at);
    return at;
  }
  size_t up_to_three_numbers(size_t at) const {
    for (int i = 0; i < 3 && is(kNumbers, at); ++i) at = behind(at);
    return at;
  }

  // 's 't 're 've 'm 'll 'd; with `any_case` in capitals too, and U+017F for s.
  size_t contraction(size_t at, bool any_case) const {
    if (byte(at) != '\'') return at;
    const auto small = [&](size_t i) { return any_case ? ascii_lower(byte(i)) : static_cast<char>(byte(i)); };
    const char first = small(at + 1), second = small(at + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l'))
      return at + 3;
    if (any_case && text_.substr(at + 1, 2) == "\u017F") return at + 3;
    return at;
  }

  // \s+(?!\S)|\s+, where a white space is: without the last character of a run that something follows.
  size_t spaces(size_t at) const {
    size_t last = at, end = at;
    while (is_space(end)) {
      last = end;
      end = behind(end);
    }
    return at_end(end) || last == at ? end : last;
  }

  // \s*[\r\n]+: to the last line end of a run of white space.
  size_t line_ends(size_t at) const {
    size_t found = at;
    for (size_t end = at; is_space(end);) {
      const bool line_end = is_line_end(end);
      end = behind(end);
      if (line_end) found = end;
    }
    return found;
  }

 private:
  uint16_t properties_at(size_t at) const { return table_[next_character(text_, at)]; }
  uint32_t mask_at(size_t at) const { return uint32_t{1} << (properties_at(at) & properties::category_bits); }

  std::string_view text_;
  const uint16_t* table_;
};

size_t next_gpt2(const Reader& r, size_t at) {
  if (const size_t end = r.contraction(at, false); end > at) return end;
  const size_t word = r.byte(at) == ' ' ? at + 1 : at;
  if (r.is(kLetters, word)) return r.run(kLetters, word);
  if (r.is(kNumbers, word)) return r.run(kNumbers, word);
  if (const size_t end = r.run_of_others(word); end > word) return end;
  return r.spaces(at);
}

// What Llama 3 and Qwen have in common; they differ in how many digits are a word.
template <bool three_digits>
size_t next_llama(const Reader& r, size_t at) {
  if (const size_t end = r.contraction(at, true); end > at) return end;
  if (r.is(kLetters, at)) return r.run(kLetters, at);
  if (r.is(kNumbers, at)) return three_digits ? r.up_to_three_numbers(at) : r.behind(at);
  if (!r.is_line_end(at))
    if (const size_t word = r.behind(at); r.is(kLetters, word)) return r.run(kLetters, word);
  const size_t word = r.byte(at) == ' ' ? at + 1 : at;
  if (size_t end = r.run_of_others(word); end > word) {
    while (r.is_line_end(end)) ++end;
    return end;
  }
  if (const size_t end = r.line_ends(at); end > at) return end;
  return r.spaces(at);
}

// [upper]*[lower]+, where the sets overlap: when no small letter follows the first run, it gives back characters up to
// the last one that is in both.
size_t capitalized_word(const Reader& r, size_t at) {
  size_t end = at, last_in_both = at;
  bool any_in_both = false;
  while (r.is(kUpper, end)) {
    if (r.is(kLower, end)) {
      last_in_both = end;
      any_in_both = true;
    }
    end = r.behind(end);
  }
  if (r.is(kLower, end)) return r.run(kLower, end);
  return any_in_both ? r.behind(last_in_both) : at;
}

size_t capital_word(const Reader& r, size_t at) {
  const size_t end = r.run(kUpper, at);
  return end > at ? r.run(kLower, end) : at;
}

size_t next_o200k(const Reader& r, size_t at) {
  const bool prefix = !r.is_line_end(at) && !r.is(kLetters | kNumbers, at);
  for (const auto word : {capitalized_word, capital_word}) {
    if (prefix)
      if (const size_t end = word(r, r.behind(at)); end > r.behind(at)) return r.contraction(end, true);
    if (const size_t end = word(r, at); end > at) return r.contraction(end, true);
  }
  if (r.is(kNumbers, at)) return r.up_to_three_numbers(at);
  const size_t word = r.byte(at) == ' ' ? at + 1 : at;
  if (size_t end = r.run_of_others(word); end > word) {
    while (r.is_line_end(end) || r.byte(end) == '/') ++end;
    return end;
  }
  if (const size_t end = r.line_ends(at); end > at) return end;
  return r.spaces(at);
}

/// Every character is in a match, so that matches follow each other without gaps.
template <size_t (*next)(const Reader&, size_t)>
class Scanner final : public Pattern {
 public:
  void search(std::string_view text, const std::function<void(Match)>& found, SearchBudget&) const override {
    const Reader reader(text);
    for (size_t at = 0; at < text.size();) {
      const size_t end = next(reader, at);
      found({at, end});
      at = end;
    }
  }
};

}  // namespace

std::unique_ptr<Pattern> gpt2_pattern() {
  return std::make_unique<Scanner<next_gpt2>>();
}

std::unique_ptr<Pattern> scanner_for(std::string_view expression) {
  if (expression == kGpt2) return gpt2_pattern();
  if (expression == kLlama3) return std::make_unique<Scanner<next_llama<true>>>();
  if (expression == kQwen2) return std::make_unique<Scanner<next_llama<false>>>();
  if (expression == kO200k) return std::make_unique<Scanner<next_o200k>>();
  return nullptr;
}

}  // namespace attune::huggingface
