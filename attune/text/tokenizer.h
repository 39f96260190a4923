#pragma once
// Text to token ids and back.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] attune {

/// The ids of special tokens, inside the vocabulary. Attune's own tokenizers have the first four; one from Hugging
/// Face's hub has -1 for those that neither its folder nor its class in transformers names.
struct SpecialIds {
  int32_t pad = 0, unk = 1, bos = 2, eos = 3;
  int32_t mask = -1, cls = -1, sep = -1;
  bool contains(int32_t id) const {
    return id == pad || id == unk || id == bos || id == eos || id == mask || id == cls || id == sep;
  }
};

/// A text, or two, as a model reads it.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // for each id: which of two texts it belongs to
  int64_t cut = 0;                // tokens that truncation left out
};

/// What is left out of texts that are too long.
struct Truncation {
  enum class Strategy { longest_first, only_first, only_second };
  int64_t max_length = 512;  // special tokens included
  Strategy strategy = Strategy::longest_first;
  bool from_left = false;  // the beginning goes, in place of the end
};

/// How the shorter texts of a batch become as long as the others.
struct Padding {
  int64_t length = 0;       // 0: as long as the longest
  int64_t multiple_of = 1;  // lengths are rounded up
  bool on_left = false;
  int32_t id = 0, type_id = 0;
};

struct EncodeOptions {
  bool special_tokens = true;  // [CLS], [SEP], <s> and the like, where the model expects them
  bool target = false;         // the text is in the language that a translator writes, see encode_target()
  std::optional<Truncation> truncation = {};
};

/// Truncates the ids of one text, or of two, so that `added` more fit. Returns how many it left out. Throws DataError
/// when the strategy cannot.
int64_t truncate(const Truncation& truncation, int64_t added, std::vector<int32_t>& first,
                 std::vector<int32_t>* second);

/// Pads a batch. Attention goes to the ids that were there: a caller that needs their number asks before.
void pad(const Padding& padding, std::vector<Encoding>& batch);

/// A vocabulary, and how text becomes its tokens. Safe to use from several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer();

  /// Returns ids without bos and eos; none for text without tokens.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;

  /// The same for a text in the language that a translator writes: encode(), but with Marian, whose one vocabulary has
  /// the pieces of two models, one for each language.
  virtual std::vector<int32_t> encode_target(std::string_view text) const { return encode(text); }

  /// Returns ids with the special tokens that a model expects around a text. Without such tokens: encode().
  virtual Encoding encode_for_model(std::string_view text, const EncodeOptions& options = {}) const;

  /// The same for two texts. Throws ConfigError when the tokenizer has no form for pairs.
  virtual Encoding encode_pair(std::string_view first, std::string_view second,
                               const EncodeOptions& options = {}) const;

  /// What the tokenizer's own file asks for; encode_for_model() does only what its options say.
  virtual std::optional<Truncation> truncation() const { return {}; }
  virtual std::optional<Padding> padding() const { return {}; }

  /// Returns the text of ids. Special tokens give none, unless they are asked for. Throws DataError on an id outside
  /// the vocabulary.
  std::string decode(std::span<const int32_t> ids, bool with_special_tokens = false) const;

  /// The id of a token as piece() shows it, -1 when there is none.
  virtual int32_t token_id(std::string_view token) const;

  /// Whether decode() leaves this token out.
  virtual bool is_special_token(int32_t id) const;

  /// Whether a line end in a text is a token, so that decoding gives it back. Otherwise text is encoded line by line.
  virtual bool keeps_line_ends() const { return false; }

  virtual int32_t vocab_size() const = 0;

  /// One token as people see it. Throws DataError on an id outside the vocabulary.
  virtual std::string piece(int32_t id) const = 0;

  int32_t pad_id() const { return special_.pad; }
  int32_t unk_id() const { return special_.unk; }
  int32_t bos_id() const { return special_.bos; }
  int32_t eos_id() const { return special_.eos; }
  const SpecialIds& special_ids() const { return special_; }

  /// What it is, in a word or two: "whitespace", "SentencePiece".
  virtual std::string kind() const = 0;

  /// Name inside a model folder: "tokenizer.model", "vocabulary.json", or that of a file from Hugging Face's hub.
  virtual std::string file_name() const = 0;
  virtual void save(const std::filesystem::path& file) const = 0;

 protected:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;

  virtual std::string join(const std::vector<int>& ids) const = 0;  // ids inside the vocabulary
  void check_id(int32_t id) const;                                  // throws DataError

  SpecialIds special_;
};

/// The special tokens that the tokenizer puts in front of a text for a model: bos, for most language models.
std::vector<int32_t> tokens_before(const Tokenizer& tokenizer);

/// No tokenizer file is larger; the largest known are below 20 MiB.
inline constexpr uint64_t kMaxTokenizerBytes = uint64_t{64} << 20;

/// Reads a SentencePiece model (.model), Hugging Face's tokenizer.json, or a vocabulary of words, characters or bytes
/// (.json, by its "type"); with another file name, its first byte decides. Of a folder it reads what is there, see
/// find_tokenizer(). Throws FileError that names the file.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);

}  // namespace attune
