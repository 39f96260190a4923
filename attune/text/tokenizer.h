#pragma once
// Text to token ids and back.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] attune {

/// The ids of special tokens; all are inside the vocabulary.
struct SpecialIds {
  int32_t pad = 0, unk = 1, bos = 2, eos = 3;
};

/// A vocabulary, and how text becomes its tokens. Safe to use from several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer();

  /// Returns ids without bos and eos; none for text without tokens.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;

  /// Returns the text of ids; pad, bos and eos give none. Throws DataError on an id outside the vocabulary.
  std::string decode(std::span<const int32_t> ids) const;

  /// Whether a line end in a text is a token, so that decoding gives it back. Otherwise text is encoded line by line.
  virtual bool keeps_line_ends() const { return false; }

  virtual int32_t vocab_size() const = 0;

  /// One token as people see it. Throws DataError on an id outside the vocabulary.
  virtual std::string piece(int32_t id) const = 0;

  int32_t pad_id() const { return special_.pad; }
  int32_t unk_id() const { return special_.unk; }
  int32_t bos_id() const { return special_.bos; }
  int32_t eos_id() const { return special_.eos; }

  /// Name inside a model folder: "tokenizer.model" or "tokenizer.json".
  virtual std::string file_name() const = 0;
  virtual void save(const std::filesystem::path& file) const = 0;

 protected:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;

  virtual std::string join(const std::vector<int>& ids) const = 0;  // ids inside the vocabulary, no pad, bos or eos
  void check_id(int32_t id) const;                                  // throws DataError

  SpecialIds special_;
};

/// No tokenizer file is larger; the largest known are below 20 MiB.
inline constexpr uint64_t kMaxTokenizerBytes = uint64_t{64} << 20;

/// Reads a SentencePiece model (.model) or a vocabulary of words, characters or bytes (.json, by its "type"); with
/// another file name, its first byte decides. Throws FileError that names the file.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& file);

}  // namespace attune
