#pragma once
// What a Split, Replace or ByteLevel looks for in a text: a string, a regular expression, or one of the expressions of
// well-known models, for which there are scanners.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "attune/text/huggingface/fields.h"

namespace attune::huggingface {

struct Match {
  size_t begin = 0, end = 0;
};

/// The steps that regular expressions may still take. All words of a text share one budget: with one for each, many
/// short words could take hours together.
struct SearchBudget {
  explicit SearchBudget(size_t bytes) : left(300'000'000 + 300 * bytes) {}
  size_t left;
};

/// Finds the matches in a text one after the other. Thread-safe.
class Pattern {
 public:
  virtual ~Pattern();

  /// Calls `found` with each match in order; they do not overlap. Throws DataError when a regular expression takes more
  /// steps than are allowed.
  virtual void search(std::string_view text, const std::function<void(Match)>& found, SearchBudget& budget) const = 0;

  /// The same with a budget for this text alone.
  void for_each_match(std::string_view text, const std::function<void(Match)>& found) const {
    SearchBudget budget(text.size());
    search(text, found, budget);
  }
};

/// Matches of exactly this string; none of the empty string.
std::unique_ptr<Pattern> string_pattern(std::string text);

/// The pattern of GPT-2: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::unique_ptr<Pattern> gpt2_pattern();

/// A scanner when this is the expression of GPT-2, Llama 3, Qwen 2 or o200k, and else a regular expression. `where`
/// begins messages. Throws FileError when the expression is not valid, too large, or has what is not supported.
std::unique_ptr<Pattern> regex_pattern(const std::string& expression, const std::string& where);

/// {"String": "..."} or {"Regex": "..."}. Throws FileError.
std::unique_ptr<Pattern> read_pattern(const Fields& fields, const char* name);

}  // namespace attune::huggingface
