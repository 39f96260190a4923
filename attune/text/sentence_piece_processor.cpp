#include "attune/text/sentence_piece_processor.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <exception>

#include "attune/base/fail.h"
#include "attune/base/git_lfs.h"
#include "attune/text/sentence_piece_check.h"
#include "attune/text/sentence_piece_model.h"
#include "attune/text/tokenizer.h"
#include "attune/text/unicode.h"

namespace attune {
namespace {

constexpr size_t kMaxTextBytes = size_t{8} << 20;  // normalization may lengthen it; SentencePiece counts in int

// SentencePiece's name for the piece of a byte: <0x41>.
bool is_byte_name(std::string_view piece) {
  return piece.size() == 6 && piece.starts_with("<0x") && piece.ends_with('>') &&
         piece.substr(3, 2).find_first_not_of("0123456789ABCDEF") == std::string_view::npos;
}

// Returns 256 pieces of the type BYTE (6) and byte_fallback = true, in protobuf's encoding. Appended to the bytes of a
// model, they become a part of it.
std::string byte_pieces() {
  std::string pieces;
  for (int byte = 0; byte < 256; ++byte) pieces += fmt::format("\x0A\x0A\x0A\x06<0x{:02X}>\x18\x06", byte);
  return pieces + "\x12\x03\x98\x02\x01";
}

// A processor that takes linear time for a run of characters that its model does not know. SentencePiece makes one
// unknown piece of such a run and copies its text once for each character (PopulateSentencePieceText() of version
// 0.1.97), unless the model has pieces for single bytes: byte_fallback, which SentencePiece accepts only with all 256
// of them. So a model without it gets them here, behind its own, and each run of them in a result becomes one unknown
// piece again. Callers never see them.
class LinearProcessor final : public sentencepiece::SentencePieceProcessor {
  using Base = sentencepiece::SentencePieceProcessor;
  using Status = sentencepiece::util::Status;

 public:
  using Base::Encode;

  Status load(const std::string& model, const std::string& name) {
    const PieceModel parts = read_piece_model(model, name);
    adds_bytes_ = !parts.byte_fallback;
    for (size_t id = 0; adds_bytes_ && id < parts.pieces.size(); ++id)  // two pieces could not be told apart
      if (is_byte_name(parts.pieces[id].text))
        fail<FileError>("{}: piece {} has the name of a byte, {}, but the model has no byte_fallback", name, id,
                        parts.pieces[id].text);
    const Status status = LoadFromSerializedProto(adds_bytes_ ? model + byte_pieces() : model);
    if (!status.ok()) return status;
    size_ = Base::GetPieceSize() - (adds_bytes_ ? 256 : 0);
    while (!IsUnknown(unknown_)) ++unknown_;  // each model has one
    return status;
  }

  int GetPieceSize() const override { return size_; }

  int PieceToId(std::string_view piece) const override {
    const int id = Base::PieceToId(piece);
    return id < size_ ? id : unknown_;
  }

  Status Encode(std::string_view text, std::vector<int>* ids) const override {
    const Status status = Base::Encode(text, ids);
    if (!status.ok()) return status;
    size_t kept = 0;
    bool in_run = false;
    for (const int id : *ids) {
      const bool is_byte = id >= size_;
      if (!is_byte || !in_run) (*ids)[kept++] = is_byte ? unknown_ : id;
      in_run = is_byte;
    }
    ids->resize(kept);
    return status;
  }

  Status Encode(std::string_view text, std::vector<std::string>* pieces) const override {
    if (!adds_bytes_) return Base::Encode(text, pieces);
    std::vector<int> ids;
    const Status status = Base::Encode(text, &ids);
    if (!status.ok()) return status;
    pieces->clear();
    bool in_run = false;
    for (const int id : ids) {
      const bool is_byte = id >= size_;
      if (!is_byte || !in_run) pieces->emplace_back();
      if (is_byte) {
        pieces->back() += static_cast<char>(id - size_);
      } else {
        pieces->back() = IdToPiece(id);
      }
      in_run = is_byte;
    }
    return status;
  }

 private:
  bool adds_bytes_ = false;
  int size_ = 0;     // pieces of the model
  int unknown_ = 0;  // the id of its unknown piece
};

template <class Result>
void encode_text(const sentencepiece::SentencePieceProcessor& processor, std::string_view text, Result& result) {
  check_text_size(text);
  const auto status = processor.Encode(text, &result);
  if (!status.ok()) fail<DataError>("cannot tokenize a text of {} bytes: {}", text.size(), status.message());
}

std::string decode(const sentencepiece::SentencePieceProcessor& processor, const std::vector<int>& pieces) {
  std::string text;
  const auto status = processor.Decode(pieces, &text);
  if (!status.ok()) fail<DataError>("cannot join {} pieces to a text: {}", pieces.size(), status.message());
  return text;
}

// How often `text` begins with `space`.
size_t leading(std::string_view space, std::string_view text) {
  size_t count = 0;
  for (; text.starts_with(space); text.remove_prefix(space.size())) ++count;
  return count;
}

}  // namespace

void check_text_size(std::string_view text) {
  if (text.size() > kMaxTextBytes)
    fail<DataError>("cannot tokenize a text of {} bytes, at most {} are accepted", text.size(), kMaxTextBytes);
}

std::unique_ptr<sentencepiece::SentencePieceProcessor> load_sentence_piece(std::string_view model,
                                                                           const std::string& name) {
  if (model.size() > kMaxTokenizerBytes)
    fail<FileError>("{}: has {} bytes, at most {} are accepted here", name, model.size(), kMaxTokenizerBytes);
  check_is_fetched(model, name);
  const std::string checked = checked_sentence_piece_model(model, name);
  auto processor = std::make_unique<LinearProcessor>();
  try {
    const auto status = processor->load(checked, name);
    if (!status.ok()) fail<FileError>("{}: SentencePiece cannot use the model: {}", name, status.message());
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // of the trie builder
    fail<FileError>("{}: SentencePiece cannot use the model: {}", name, error.what());
  }
  return processor;
}

void encode(const sentencepiece::SentencePieceProcessor& processor, std::string_view text, std::vector<int>& ids) {
  encode_text(processor, text, ids);
}

void encode(const sentencepiece::SentencePieceProcessor& processor, std::string_view text,
            std::vector<std::string>& pieces) {
  encode_text(processor, text, pieces);
}

void append_text(const sentencepiece::SentencePieceProcessor& processor, std::vector<int>& pieces, std::string& text) {
  if (pieces.empty()) return;
  // Most models leave out the space of the first piece, as at the start of a text. Here a text stands before it.
  const std::string& first = processor.IdToPiece(pieces.front());
  if (!text.empty() && first.starts_with(kMetaspace) &&
      leading(kMetaspace, first) > leading(" ", decode(processor, {pieces.front()})))
    text += ' ';
  text += decode(processor, pieces);
  pieces.clear();
}

}  // namespace attune
