#pragma once
// What turns a word into tokens: BPE, WordPiece, Unigram or WordLevel.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attune/text/huggingface/fields.h"
#include "attune/text/huggingface/token_map.h"
#include "attune/text/huggingface/tokenizer_json.h"
#include "attune/text/huggingface/word_cache.h"

namespace attune::huggingface {

/// Memory that encoding uses again for each word. One for each thread that encodes.
struct Workspace {
  virtual ~Workspace() = default;
  WordCache cache;
};

class Model {
 public:
  virtual ~Model();

  /// Appends the tokens of a word, which is not empty. Throws DataError when a character has no token and the model has
  /// none for unknown ones. `workspace` is one that make_workspace() made.
  void encode(std::string_view word, Workspace& workspace, std::vector<int32_t>& ids) const {
    const uint64_t hash = word.size() <= WordCache::kLongestWord ? hash_of(word) : 0;
    if (workspace.cache.find(word, hash, ids)) return;
    const size_t before = ids.size();
    encode_new(word, workspace, ids);
    workspace.cache.insert(word, hash, std::span(ids).subspan(before));
  }

  virtual std::unique_ptr<Workspace> make_workspace() const { return std::make_unique<Workspace>(); }

  const TokenMap& vocabulary() const { return vocabulary_; }
  virtual int32_t unknown_id() const = 0;  // -1: none

  /// From now on words are bytes, where Hugging Face has a character for each byte. Returns false when the model cannot
  /// do that.
  virtual bool take_bytes() { return false; }

  /// Whether a text that is one word may be cut in front of each U+2581 that follows another character.
  virtual bool is_cut_at_metaspace() const { return false; }

 protected:
  explicit Model(TokenMap vocabulary) : vocabulary_(std::move(vocabulary)) {}
  virtual void encode_new(std::string_view word, Workspace& workspace, std::vector<int32_t>& ids) const = 0;

  TokenMap vocabulary_;
};

/// A vocabulary of {"token": id}. Throws FileError when an id is there twice.
TokenMap token_map(const VocabularyEntries& entries, const std::string& where);

/// Throws FileError for a token of more than 1,024 bytes, the limit of SentencePiece's models too. For models that look
/// for tokens at each place of a text: a long token would make that take quadratic time.
void check_token_bytes(const TokenMap& vocabulary, const std::string& where);

/// The byte of each character that stands for a byte in byte-level vocabularies (GPT-2), -1 for other characters.
int byte_of_character(char32_t c);
/// The character that stands for a byte.
char32_t character_of_byte(uint8_t byte);
/// The bytes that a text of such characters stands for; false when there is another character in it.
bool bytes_of_characters(std::string_view text, std::string& bytes);

/// The tokens <0x00> to <0xFF> of a vocabulary.
class ByteTokens {
 public:
  explicit ByteTokens(const TokenMap& vocabulary);
  /// Appends the tokens of these bytes. Returns false, and appends nothing, when one has none.
  bool append(std::string_view bytes, std::vector<int32_t>& ids) const;

 private:
  std::array<int32_t, 256> ids_;
};

/// The model of a tokenizer.json; its vocabulary and merges are `file`'s. Throws FileError.
std::unique_ptr<Model> read_model(TokenizerJson& file, const std::string& name);

}  // namespace attune::huggingface
