#pragma once
// Attune's own tokenizers in Hugging Face's format.

#include <filesystem>
#include <string>
#include <vector>

#include "attune/text/tokenizer.h"

namespace attune::huggingface {

/// Whether it is one of Attune's own: a SentencePiece model, words, characters or bytes.
bool is_own_tokenizer(const Tokenizer& tokenizer);

/// The tokens that a model expects around a text.
struct TextFrame {
  bool bos = false;  // in front
  bool eos = false;  // behind
};

/// Writes tokenizer.json, which gives the tokens of `tokenizer`, with `frame` around a text, and tokenizer_config.json,
/// by which transformers reads it. `most_tokens`: that a text may have. Returns a line for each thing that is left out.
/// Throws ConfigError for a tokenizer that has no such form: a SentencePiece model of characters or words.
///
/// There is one difference: in a text, the names of special tokens ("<s>") are these tokens, as in all files of this
/// format.
std::vector<std::string> write_tokenizer(const std::filesystem::path& folder, const Tokenizer& tokenizer,
                                         const TextFrame& frame, int64_t most_tokens);

}  // namespace attune::huggingface
