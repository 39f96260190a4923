#pragma once
// Vocabularies that need no training: single characters and bytes.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "attune/text/tokenizer.h"

namespace [[gnu::visibility("default")]] attune {

/// Tokens are Unicode code points; white space and line ends are tokens like any other. <pad> <unk> <s> </s> are ids 0
/// to 3. A character that is not in the vocabulary becomes <unk>, and so does a byte that is not UTF-8. Stored as
/// {"type": "characters", "characters": ["\n", " ", "a", ...]}; the first character has id 4.
class CharacterTokenizer final : public Tokenizer {
 public:
  /// The ids of `characters` follow those of the special tokens. Throws DataError when one is not exactly one code
  /// point or comes twice.
  explicit CharacterTokenizer(std::vector<std::string> characters);

  /// Takes the characters of files, plain or gzip, or of texts, in the order of their code points. Throws DataError
  /// when there are none.
  static CharacterTokenizer build(const std::vector<std::filesystem::path>& files);
  static CharacterTokenizer build_from_texts(const std::vector<std::string>& texts);

  /// `name` is for messages. Throws FileError.
  static CharacterTokenizer from_json(std::string_view json, const std::string& name);

  std::vector<int32_t> encode(std::string_view text) const override;
  bool keeps_line_ends() const override { return true; }
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }
  std::string piece(int32_t id) const override;
  std::string kind() const override { return "characters"; }
  std::string file_name() const override { return "vocabulary.json"; }
  void save(const std::filesystem::path& file) const override;

 private:
  std::string join(const std::vector<int>& ids) const override;

  std::vector<std::string> pieces_;
  std::vector<int32_t> ids_;  // by code point, <unk> where there is none; up to the largest of the vocabulary
};

/// Tokens are bytes: 256 of them after <pad> <unk> <s> </s>, so that byte b is id 4 + b and any text can be encoded.
/// decode() returns U+FFFD for <unk> and for every byte that is not part of a UTF-8 character. Stored as {"type":
/// "bytes"}.
class ByteTokenizer final : public Tokenizer {
 public:
  /// `name` is for messages. Throws FileError.
  static ByteTokenizer from_json(std::string_view json, const std::string& name);

  std::vector<int32_t> encode(std::string_view text) const override;
  bool keeps_line_ends() const override { return true; }
  int32_t vocab_size() const override { return 260; }
  std::string piece(int32_t id) const override;  // <0x0A>, as SentencePiece writes bytes
  std::string kind() const override { return "bytes"; }
  std::string file_name() const override { return "vocabulary.json"; }
  void save(const std::filesystem::path& file) const override;

 private:
  std::string join(const std::vector<int>& ids) const override;
};

}  // namespace attune
