#pragma once
// Unigram (Kudo 2018): the tokens with the greatest sum of scores, found by Viterbi's algorithm.

#include <memory>

#include "attune/text/huggingface/model.h"
#include "attune/text/huggingface/trie.h"

namespace attune::huggingface {

struct UnigramOptions {
  int32_t unknown = -1;        // id; -1: none
  bool byte_fallback = false;  // unknown characters become the tokens of their bytes, <0x00> to <0xFF>
};

class Unigram final : public Model {
 public:
  /// Token i of the vocabulary has id i and scores[i].
  Unigram(TokenMap vocabulary, std::vector<double> scores, const UnigramOptions& options);
  int32_t unknown_id() const override { return unknown_; }
  std::unique_ptr<Workspace> make_workspace() const override;

 private:
  void encode_new(std::string_view word, Workspace& workspace, std::vector<int32_t>& ids) const override;
  void append_unknown(std::string_view text, std::vector<int32_t>& ids) const;

  std::vector<double> scores_;
  Trie trie_;
  int32_t unknown_;
  double unknown_score_ = 0;
  ByteTokens byte_tokens_;
  bool byte_fallback_;
};

std::unique_ptr<Model> read_unigram(const Fields& fields, TokenizerJson& file);

}  // namespace attune::huggingface
