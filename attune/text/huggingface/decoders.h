#pragma once
// Turns tokens into a text.

#include <memory>
#include <string>
#include <vector>

#include "attune/text/huggingface/fields.h"

namespace attune::huggingface {

class Decoder {
 public:
  virtual ~Decoder();
  /// Changes the pieces; joined, they are the text. A sequence throws DataError when they grow to more than 64 times
  /// their size and 4 KiB.
  virtual void apply(std::vector<std::string>& pieces) const = 0;
};

/// The decoder that a value describes; null for null. Throws FileError.
std::unique_ptr<Decoder> read_decoder(const nlohmann::json* value, const std::string& where, int depth = 0);

/// Removes spaces that English does not have: in front of . ? ! , and of 'm 's 've 're n't. This is transformers'
/// clean_up_tokenization.
void clean_up_spaces(std::string& text);

/// For folders without tokenizer.json.
std::unique_ptr<Decoder> word_piece_decoder();
std::unique_ptr<Decoder> byte_level_decoder();

}  // namespace attune::huggingface
