#include "attune/text/sentence_piece_tokenizer.h"

#include <sentencepiece_processor.h>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/text/sentence_piece_processor.h"

namespace attune {
namespace {

int32_t require_special(int id, std::string_view piece, const std::string& name) {
  if (id < 0) fail<FileError>("{}: the model has no {} piece", name, piece);
  return id;
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(const std::filesystem::path& file)
    : SentencePieceTokenizer(read_file(file, kMaxTokenizerBytes), file.string()) {}

SentencePieceTokenizer::SentencePieceTokenizer(std::string model, const std::string& name)
    : model_(std::move(model)), processor_(load_sentence_piece(model_, name)) {
  special_.unk = require_special(processor_->unk_id(), "<unk>", name);
  special_.bos = require_special(processor_->bos_id(), "<s>", name);
  special_.eos = require_special(processor_->eos_id(), "</s>", name);
  special_.pad = processor_->pad_id() >= 0 ? processor_->pad_id() : special_.eos;
}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;

std::vector<int32_t> SentencePieceTokenizer::encode(std::string_view text) const {
  std::vector<int> ids;
  attune::encode(*processor_, text, ids);
  return ids;
}

std::string SentencePieceTokenizer::join(const std::vector<int>& ids) const {
  std::string text;
  std::vector<int> pieces;
  for (const int id : ids) {
    if (!is_special_token(id)) {
      pieces.push_back(id);
      continue;
    }
    append_text(*processor_, pieces, text);  // SentencePiece would leave the special token out
    text += piece(id);
  }
  append_text(*processor_, pieces, text);
  return text;
}

int32_t SentencePieceTokenizer::vocab_size() const {
  return processor_->GetPieceSize();
}

std::string SentencePieceTokenizer::piece(int32_t id) const {
  check_id(id);
  return processor_->IdToPiece(id);
}

void SentencePieceTokenizer::save(const std::filesystem::path& file) const {
  write_file(file, model_);
}

}  // namespace attune
