#pragma once
// A vocabulary of words for text that is tokenized already.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "attune/text/tokenizer.h"

namespace [[gnu::visibility("default")]] attune {

struct WhitespaceOptions {
  int64_t min_count = 1;            // words that are rarer become <unk>
  int64_t max_size = 0;             // of the vocabulary, specials included; 0: no limit
  std::string subword_marker = {};  // "@@" after subword-nmt: decode() joins "ab@@ cd" to "abcd"
  void validate() const;            // throws ConfigError
};

/// Tokens are the words between spaces, tabs and line ends. <pad> <unk> <s> </s> are ids 0 to 3. A word that is not in
/// the vocabulary becomes <unk>, and so do these four names. Stored as {"type": "whitespace", "subword_marker": "@@",
/// "pieces": ["<pad>", "<unk>", "<s>", "</s>", ...]}.
class WhitespaceTokenizer final : public Tokenizer {
 public:
  /// The ids of `words` follow those of the special tokens. Throws DataError when one is empty, comes twice, has white
  /// space or is not UTF-8, and when there are too many.
  explicit WhitespaceTokenizer(const std::vector<std::string>& words, std::string subword_marker = {});

  /// Takes the words of files, the most frequent first and equally frequent ones in the order of their bytes. Throws
  /// DataError when there are none.
  static WhitespaceTokenizer build(const std::vector<std::filesystem::path>& files,
                                   const WhitespaceOptions& options = {});

  /// `name` is for messages. Throws FileError.
  static WhitespaceTokenizer from_json(std::string_view json, const std::string& name);

  std::vector<int32_t> encode(std::string_view text) const override;
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }
  std::string piece(int32_t id) const override;
  std::string kind() const override { return "whitespace"; }
  std::string file_name() const override { return "vocabulary.json"; }
  /// Throws DataError, and writes nothing, when the file would be larger than those that are read (64 MiB).
  void save(const std::filesystem::path& file) const override;
  const std::string& subword_marker() const { return subword_marker_; }

 private:
  std::string join(const std::vector<int>& ids) const override;

  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t> ids_;  // of the words
  std::string subword_marker_;
};

/// Joins the words of a text as decode() joins tokens, words outside the vocabulary included: with the subword marker
/// "@@", "ab@@ cd" gives "abcd". Returns the text as it is unless the tokenizer is a whitespace vocabulary with a
/// subword marker.
std::string joined_text(const Tokenizer& tokenizer, const std::string& text);

}  // namespace attune
