#include "attune/text/sentence_piece_model.h"

#include <bit>

#include "attune/text/sentence_piece_wire.h"

namespace attune {
namespace {

PieceModel::Piece read_model_piece(std::string_view message, const std::string& name) {
  PieceModel::Piece piece;
  WireReader reader(message, name);
  while (const auto field = reader.next()) {
    if (field->number == 1) piece.text = field->bytes;
    if (field->number == 2) piece.score = std::bit_cast<float>(static_cast<uint32_t>(field->value));
    if (field->number == 3) piece.kind = field->value;
  }
  return piece;
}

}  // namespace

PieceModel read_piece_model(std::string_view bytes, const std::string& name) {
  enum { pieces = 1, trainer = 2, normalizer = 3 };
  PieceModel model;
  WireReader reader(bytes, name);
  while (const auto part = reader.next()) {
    if (part->number == pieces) model.pieces.push_back(read_model_piece(part->bytes, name));
    if (part->number != trainer && part->number != normalizer) continue;
    WireReader fields(part->bytes, name);
    while (const auto field = fields.next()) {  // of a field that comes twice, the last counts
      if (part->number == trainer && field->number == 3) model.type = field->value;
      if (part->number == trainer && field->number == 24) model.spaces_end_words = field->value != 0;
      if (part->number == trainer && field->number == 35) model.byte_fallback = field->value != 0;
      if (part->number == normalizer && field->number == 2) model.charsmap = field->bytes;
      if (part->number == normalizer && field->number == 3) model.dummy_prefix = field->value != 0;
      if (part->number == normalizer && field->number == 4) model.remove_extra_spaces = field->value != 0;
      if (part->number == normalizer && field->number == 5) model.escape_spaces = field->value != 0;
    }
  }
  return model;
}

}  // namespace attune
