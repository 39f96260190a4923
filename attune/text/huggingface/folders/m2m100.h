#pragma once
// The tokenizer of M2M100 models from the hub: SentencePiece cuts, vocab.json numbers, and each language has a token.

#include <filesystem>
#include <memory>

#include "attune/text/huggingface/folders/tokenizer_config.h"

namespace attune::huggingface {

/// Whether `file`, a sentencepiece.bpe.model, is one of M2M100: by its class, or without one by the vocab.json beside.
bool is_m2m100(const std::filesystem::path& file, const TokenizerConfig& config);

/// Pieces have the ids of the vocab.json beside `file`; the languages that the folder names follow, in their order.
/// A model expects the language before a text and </s> after it. Throws FileError that names the file.
std::unique_ptr<Tokenizer> load_m2m100(const std::filesystem::path& file, TokenizerConfig config);

}  // namespace attune::huggingface
