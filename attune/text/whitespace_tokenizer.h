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

/// Tokens are the words between spaces, tabs and line ends. <pad> <unk> <s> </s> are ids 0 to 3; of these, text only
/// becomes <unk>. Stored as {"type": "whitespace", "subword_marker": "@@", "pieces": ["<pad>", "<unk>", "<s>", "</s>",
/// ...]}.
class WhitespaceTokenizer final : public Tokenizer {
 public:
  /// `words` follow the specials. Throws DataError when one is empty, doubled, has white space or is not UTF-8.
  explicit WhitespaceTokenizer(const std::vector<std::string>& words, std::string subword_marker = {});

  /// The words of files, the most frequent first, equals in the order of their bytes. Throws DataError when there are
  /// none.
  static WhitespaceTokenizer build(const std::vector<std::filesystem::path>& files,
                                   const WhitespaceOptions& options = {});

  /// `name` is for messages. Throws FileError.
  static WhitespaceTokenizer from_json(std::string_view json, const std::string& name);

  std::vector<int32_t> encode(std::string_view text) const override;
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }
  std::string piece(int32_t id) const override;
  std::string kind() const override { return "whitespace"; }
  std::string file_name() const override { return "vocabulary.json"; }
  void save(const std::filesystem::path& file) const override;
  const std::string& subword_marker() const { return subword_marker_; }

 private:
  std::string join(const std::vector<int>& ids) const override;

  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t> ids_;  // of the words
  std::string subword_marker_;
};

/// The words of a text as decode() of these tokens would join them, also words that the vocabulary does not have: of a
/// whitespace vocabulary with a subword marker, "ab@@ cd" gives "abcd". With any other tokenizer the text as it is.
std::string joined_text(const Tokenizer& tokenizer, const std::string& text);

}  // namespace attune
