#pragma once
// Checks what SentencePiece does not check in a model file.

#include <string>
#include <string_view>

namespace attune {

/// SentencePiece walks a model's tables without looking at their bounds: a damaged or forged file can make it read
/// outside of them, recurse without end or exit the program. This checks the protobuf encoding
/// (sentencepiece_model.proto), every piece, and every state that the normalizer's trie can reach. Throws FileError
/// that begins with `name`.
///
/// Returns the model without its self-test: SentencePiece would run it when it loads the model, and print messages
/// about it.
std::string checked_sentence_piece_model(std::string_view model, const std::string& name);

}  // namespace attune
