#pragma once
// WordPiece (Schuster and Nakajima 2012; Devlin et al. 2019): the longest token first, from left to right.

#include <memory>

#include "attune/text/huggingface/model.h"
#include "attune/text/huggingface/trie.h"

namespace attune::huggingface {

struct WordPieceOptions {
  std::string unknown = "[UNK]";           // stands for a word that tokens cannot make up
  std::string continuation_prefix = "##";  // begins tokens that are not the first of their word
  int64_t longest_word = 100;              // characters; a longer word is unknown
};

class WordPiece final : public Model {
 public:
  WordPiece(TokenMap vocabulary, const WordPieceOptions& options);
  int32_t unknown_id() const override { return unknown_; }

 private:
  void encode_new(std::string_view word, Workspace&, std::vector<int32_t>& ids) const override;
  void append_unknown(std::vector<int32_t>& ids) const;

  Trie trie_;
  uint32_t continuation_ = 0;  // the node of the prefix
  bool continues_ = false;     // whether a token has the prefix
  int32_t unknown_;
  size_t longest_word_;
};

std::unique_ptr<Model> read_word_piece(const Fields& fields, const TokenizerJson& file);

}  // namespace attune::huggingface
