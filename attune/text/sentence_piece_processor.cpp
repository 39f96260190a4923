#include "attune/text/sentence_piece_processor.h"

#include <sentencepiece_processor.h>

#include <exception>

#include "attune/base/fail.h"
#include "attune/text/sentence_piece_check.h"
#include "attune/text/tokenizer.h"
#include "attune/text/unicode.h"

namespace attune {
namespace {

constexpr size_t kMaxTextBytes = size_t{8} << 20;  // normalization may lengthen it; SentencePiece counts in int

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
  const std::string checked = checked_sentence_piece_model(model, name);
  auto processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
  try {
    const auto status = processor->LoadFromSerializedProto(checked);
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
  // Most models leave out the space of the first piece, since no text stands before it there.
  const std::string& first = processor.IdToPiece(pieces.front());
  if (!text.empty() && first.starts_with(kMetaspace) &&
      leading(kMetaspace, first) > leading(" ", decode(processor, {pieces.front()})))
    text += ' ';
  text += decode(processor, pieces);
  pieces.clear();
}

}  // namespace attune
