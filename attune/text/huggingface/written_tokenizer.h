#pragma once
// Attune's own tokenizers in Hugging Face's format.

#include <filesystem>
#include <string>
#include <vector>

#include "attune/base/json.h"
#include "attune/text/text_frame.h"
#include "attune/text/tokenizer.h"

namespace attune::huggingface {

struct TokenizerUse {
  TextFrame frame;
  int64_t most_tokens = 0;  // that a text may have
};

/// Writes tokenizer.json, which gives the tokens of `tokenizer`, with the frame around a text, and
/// tokenizer_config.json, by which transformers reads it. Adds a line to `left_out` for each thing that is left out.
/// Returns false, having written nothing, unless the tokenizer is one of Attune's own: a SentencePiece model, words,
/// characters or bytes. Throws ConfigError for a SentencePiece model that this format cannot hold: one of characters or
/// words, with treat_whitespace_as_suffix, or without escape_whitespaces.
///
/// There is one difference: in a text, the names of special tokens ("<s>") are these tokens, as in all files of this
/// format.
bool write_tokenizer(const std::filesystem::path& folder, const Tokenizer& tokenizer, const TokenizerUse& use,
                     std::vector<std::string>& left_out);

/// {token: id} of all tokens.
Json vocabulary_of(const Tokenizer& tokenizer);

}  // namespace attune::huggingface
