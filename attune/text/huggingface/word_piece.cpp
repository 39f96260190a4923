#include "attune/text/huggingface/word_piece.h"

#include <algorithm>

namespace attune::huggingface {
namespace {

size_t character_count(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

Trie trie_of(const TokenMap& vocabulary) {
  std::vector<std::pair<std::string_view, int32_t>> keys;
  keys.reserve(vocabulary.size());
  for (int32_t id = 0; id <= vocabulary.highest_id(); ++id)
    if (vocabulary.has(id)) keys.emplace_back(vocabulary.token(id), id);
  return Trie(std::move(keys));
}

}  // namespace

WordPiece::WordPiece(TokenMap vocabulary, const WordPieceOptions& options)
    : Model(std::move(vocabulary)),
      trie_(trie_of(vocabulary_)),
      unknown_(vocabulary_.find(options.unknown)),
      longest_word_(static_cast<size_t>(options.longest_word)) {
  continuation_ = Trie::kRoot;
  continues_ = trie_.walk(continuation_, options.continuation_prefix);
}

void WordPiece::append_unknown(std::vector<int32_t>& ids) const {
  if (unknown_ < 0) fail<DataError>("cannot tokenize a word: the vocabulary has no token for unknown words");
  ids.push_back(unknown_);
}

void WordPiece::encode_new(std::string_view word, Workspace&, std::vector<int32_t>& ids) const {
  if (word.size() > longest_word_ && character_count(word) > longest_word_) return append_unknown(ids);
  const size_t before = ids.size();
  for (size_t at = 0; at < word.size();) {
    uint32_t node = at == 0 ? Trie::kRoot : continuation_;
    size_t end = at;
    int32_t found = Trie::kNone;
    if (at == 0 || continues_)
      for (size_t i = at; i < word.size() && trie_.step(node, word[i]); ++i)
        if (const int32_t id = trie_.value(node); id >= 0) found = id, end = i + 1;
    if (found < 0) {
      ids.resize(before);
      return append_unknown(ids);
    }
    ids.push_back(found);
    at = end;
  }
}

std::unique_ptr<Model> read_word_piece(const Fields& fields, const TokenizerJson& file) {
  WordPieceOptions options;
  options.unknown = fields.string("unk_token", options.unknown);
  options.continuation_prefix = fields.string("continuing_subword_prefix", options.continuation_prefix);
  options.longest_word = fields.number("max_input_chars_per_word", INT32_MAX, options.longest_word);
  TokenMap vocabulary = token_map(file.vocabulary, fields.where("vocab"));
  check_token_bytes(vocabulary, fields.where("vocab"));
  return std::make_unique<WordPiece>(std::move(vocabulary), options);
}

}  // namespace attune::huggingface
