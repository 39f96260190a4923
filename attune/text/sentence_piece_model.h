#pragma once
// What Attune itself reads of a SentencePiece model.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attune {

/// A ModelProto of sentencepiece_model.proto. Its texts are views of the bytes that it was read from.
struct PieceModel {
  enum Type { unigram = 1, bpe = 2, words = 3, characters = 4 };
  enum Kind { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  struct Piece {
    std::string_view text;
    float score = 0;
    uint64_t kind = normal;
  };
  std::vector<Piece> pieces;
  uint64_t type = unigram;
  bool byte_fallback = false;  // unknown characters become pieces of one byte each
  std::string_view charsmap;
  bool dummy_prefix = true, remove_extra_spaces = true, escape_spaces = true, spaces_end_words = false;
};

/// Reads a model that checked_sentence_piece_model() accepts. Throws FileError that begins with `name`.
PieceModel read_piece_model(std::string_view bytes, const std::string& name);

}  // namespace attune
