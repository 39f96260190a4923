#include "attune/text/huggingface/word_level.h"

#include "attune/base/cut_text.h"

namespace attune::huggingface {

void WordLevel::encode_new(std::string_view word, Workspace&, std::vector<int32_t>& ids) const {
  const int32_t id = vocabulary_.find(word);
  if (id < 0 && unknown_ < 0)
    fail<DataError>("cannot tokenize \"{}\": the vocabulary has no token for unknown words", cut_text(word, 100));
  ids.push_back(id < 0 ? unknown_ : id);
}

std::unique_ptr<Model> read_word_level(const Fields& fields, const TokenizerJson& file) {
  return std::make_unique<WordLevel>(token_map(file.vocabulary, fields.where("vocab")),
                                     fields.string("unk_token", "<unk>"));
}

}  // namespace attune::huggingface
