#pragma once
// What cuts a text into words.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attune/text/huggingface/fields.h"
#include "attune/text/huggingface/pattern.h"

namespace attune::huggingface {

/// A text and its words, in order.
struct Words {
  struct Range {
    size_t begin, end;
  };
  std::string text;
  std::vector<Range> ranges;
  SearchBudget* budget = nullptr;  // of all regular expressions; never null where there are words
  bool from_start = false;         // whether the first word begins where the original text begins

  std::string_view word(const Range& range) const {
    return std::string_view(text).substr(range.begin, range.end - range.begin);
  }
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer();

  /// Cuts each word further. May change the text too: then the ranges are of the new one. A sequence throws DataError
  /// when the text grows to more than 64 times its size and 4 KiB, and so does a tokenizer after any pre-tokenizer.
  virtual void apply(Words& words) const = 0;

  /// Whether the last step writes a character for each byte, as byte-level vocabularies have them.
  virtual bool ends_with_bytes() const { return false; }
  /// From now on that step leaves the bytes as they are. To be called only when ends_with_bytes().
  virtual void leave_bytes() {}
};

/// The pre-tokenizer that a value describes; null for null. Throws FileError.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const nlohmann::json* value, const std::string& where, int depth = 0);

/// BERT's, for a folder that has only vocab.txt.
std::unique_ptr<PreTokenizer> bert_pre_tokenizer();
/// GPT-2's, for a folder that has only vocab.json and merges.txt.
std::unique_ptr<PreTokenizer> byte_level_pre_tokenizer(bool add_prefix_space);

}  // namespace attune::huggingface
