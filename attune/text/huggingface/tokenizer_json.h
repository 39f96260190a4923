#pragma once
// Hugging Face's tokenizer.json as values that are checked where they are used. A vocabulary and its merges, nearly all
// of such a file, are kept as blocks of bytes: as JSON values they would take ten times the file's size.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace attune::huggingface {

/// Strings in one block of memory.
class StringList {
 public:
  void push_back(std::string_view text) {
    bytes_ += text;
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t i) const {
    const uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<uint32_t> ends_;
};

/// {"token": id, ...}, or [["token", score], ...], which is Unigram's.
struct VocabularyEntries {
  StringList tokens;
  std::vector<int32_t> ids;    // of an object
  std::vector<double> scores;  // of an array
};

struct TokenizerJson {
  nlohmann::json values;  // the file, without "vocab" and "merges" of "model"
  VocabularyEntries vocabulary;
  StringList merges;  // "a b", or two strings one after the other
  bool merges_are_pairs = false;
};

/// Whether this JSON text is Hugging Face's tokenizer.json: an object whose first key is one that such files have. Does
/// not read further.
bool is_tokenizer_json(std::string_view text);

/// `name` is for messages. Throws FileError.
TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& name);

/// A vocab.json: {"token": id, ...}. Throws FileError.
VocabularyEntries parse_vocabulary_object(std::string_view text, const std::string& name);

}  // namespace attune::huggingface
