#pragma once
// What all tokenizers with a SentencePiece model ask of the library.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace attune {

/// Loads a model. Encode() of the processor takes linear time for unknown characters too. Throws FileError that begins
/// with `name` when the model is damaged or too large, or has a piece with the name of a byte, but no byte_fallback.
std::unique_ptr<sentencepiece::SentencePieceProcessor> load_sentence_piece(std::string_view model,
                                                                           const std::string& name);

/// Throws DataError when a text is longer than 8 MiB.
void check_text_size(std::string_view text);

/// Replaces `ids` or `pieces` by those of a text. Throws as check_text_size() does.
void encode(const sentencepiece::SentencePieceProcessor& processor, std::string_view text, std::vector<int>& ids);
void encode(const sentencepiece::SentencePieceProcessor& processor, std::string_view text,
            std::vector<std::string>& pieces);

/// Appends the text of `pieces`, which continue `text`, and clears `pieces`. Throws DataError.
void append_text(const sentencepiece::SentencePieceProcessor& processor, std::vector<int>& pieces, std::string& text);

}  // namespace attune
