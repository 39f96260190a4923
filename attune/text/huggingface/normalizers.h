#pragma once
// What is done to a text before it is cut into words.

#include <memory>
#include <string>

#include "attune/text/huggingface/fields.h"
#include "attune/text/huggingface/pattern.h"

namespace attune::huggingface {

struct NormalizedText {
  std::string text;
  SearchBudget& budget;
  bool keeps_start = true;  // whether the first character comes from the first one of the original
};

class Normalizer {
 public:
  virtual ~Normalizer();
  /// A sequence throws DataError when the text grows to more than 64 times its size and 4 KiB, and so does a tokenizer
  /// after any normalizer; so do regular expressions that take too many steps.
  virtual void apply(NormalizedText& text) const = 0;
};

/// The normalizer that a value describes; null for null. Throws FileError.
std::unique_ptr<Normalizer> read_normalizer(const nlohmann::json* value, const std::string& where, int depth = 0);

/// BERT's, for a folder that has only vocab.txt.
struct BertNormalizerOptions {
  bool clean_text = true;            // control characters go, white space becomes a space
  bool handle_chinese_chars = true;  // a space on each side
  bool strip_accents = true;
  bool lowercase = true;
};
std::unique_ptr<Normalizer> bert_normalizer(const BertNormalizerOptions& options);

/// SentencePiece's table of replacements (charsmap), as base64 in a tokenizer.json. Throws FileError.
std::unique_ptr<Normalizer> precompiled_normalizer(const std::string& base64, const std::string& where);

}  // namespace attune::huggingface
