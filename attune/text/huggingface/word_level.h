#pragma once
// A vocabulary of whole words.

#include <memory>

#include "attune/text/huggingface/model.h"

namespace attune::huggingface {

class WordLevel final : public Model {
 public:
  WordLevel(TokenMap vocabulary, std::string_view unknown)
      : Model(std::move(vocabulary)), unknown_(vocabulary_.find(unknown)) {}
  int32_t unknown_id() const override { return unknown_; }

 private:
  void encode_new(std::string_view word, Workspace&, std::vector<int32_t>& ids) const override;
  int32_t unknown_;
};

std::unique_ptr<Model> read_word_level(const Fields& fields, const TokenizerJson& file);

}  // namespace attune::huggingface
