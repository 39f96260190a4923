#pragma once
// A tokenizer with more tokens than its model.

#include <cstdint>
#include <memory>

#include "attune/text/tokenizer.h"
#include "attune/text/tokenizer_files.h"

namespace attune {

/// Returns a tokenizer with the first `vocab` tokens of `tokenizer`, or `tokenizer` itself if it has no more. Some
/// folders of the Hugging Face hub have tokens behind the model's last one: <image_soft_token> of Gemma 3, a <pad> that
/// was added to LLaMA 2. A text with such a token is refused with a DataError that names it; a special token among them
/// counts as missing (-1).
std::shared_ptr<const Tokenizer> limited_tokenizer(std::shared_ptr<const Tokenizer> tokenizer, int64_t vocab);

/// The same for both sides. One object for both sides stays one if the sizes are the same.
TokenizerPair limited_tokenizers(const TokenizerPair& tokenizers, int64_t source_vocab, int64_t target_vocab);

}  // namespace attune
