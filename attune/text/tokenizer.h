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

/// The ids of special tokens, inside the vocabulary. Attune's own tokenizers have the first four. A tokenizer from
/// Hugging Face's hub has -1 for each token that neither its folder nor its class in transformers names.
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

/// How texts that are too long are cut.
struct Truncation {
  enum class Strategy { longest_first, only_first, only_second };
  int64_t max_length = 512;  // special tokens included
  Strategy strategy = Strategy::longest_first;
  bool from_left = false;  // cuts the beginning of a text instead of its end
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
  bool target = false;         // the text is in a translator's target language, see encode_target()
  std::optional<Truncation> truncation = {};
};

/// Truncates the ids of one text, or of two, so that `added` special tokens fit beside them. `second` is null for one
/// text. Returns the number of ids that it left out. Throws DataError when the text that the strategy cuts is too
/// short.
int64_t truncate(const Truncation& truncation, int64_t added, std::vector<int32_t>& first,
                 std::vector<int32_t>* second);

/// Pads the texts of a batch at one end. The result does not tell which ids are padding: a caller that needs the
/// lengths of the texts reads them before.
void pad(const Padding& padding, std::vector<Encoding>& batch);

/// A vocabulary, and how text becomes its tokens. Safe to use from several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer();

  /// Returns ids without bos and eos; none for text without tokens.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;

  /// The same for a text in a translator's target language. This is encode(), except with Marian: there each language
  /// has a SentencePiece model of its own, and one vocabulary gives the pieces of both their ids.
  virtual std::vector<int32_t> encode_target(std::string_view text) const { return encode(text); }

  /// Returns ids with the special tokens that a model expects around a text. A tokenizer without such tokens returns
  /// those of encode().
  virtual Encoding encode_for_model(std::string_view text, const EncodeOptions& options = {}) const;

  /// The same for two texts. Throws ConfigError when the tokenizer has no form for pairs.
  virtual Encoding encode_pair(std::string_view first, std::string_view second,
                               const EncodeOptions& options = {}) const;

  /// What the tokenizer's own file sets. encode_for_model() does only what its options say.
  virtual std::optional<Truncation> truncation() const { return {}; }
  virtual std::optional<Padding> padding() const { return {}; }

  /// Returns the text of ids, without special tokens unless they are asked for. Throws DataError on an id outside the
  /// vocabulary.
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

  /// The kind of tokenizer, for messages: "whitespace", "SentencePiece".
  virtual std::string kind() const = 0;

  /// Name inside a model folder: "tokenizer.model", "vocabulary.json", or that of a file from Hugging Face's hub.
  virtual std::string file_name() const = 0;

  /// Whether a folder can have it beside another tokenizer: its files then have names of their own,
  /// source_tokenizer.json and the like. Other files of the hub are known by their one name, as their settings are.
  virtual bool can_be_one_of_two() const { return true; }

  virtual void save(const std::filesystem::path& file) const = 0;

 protected:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;

  virtual std::string join(const std::vector<int>& ids) const = 0;  // ids inside the vocabulary
  void check_id(int32_t id) const;                                  // throws DataError

  SpecialIds special_;
};

/// No tokenizer file is larger; the largest known are below 20 MiB.
inline constexpr uint64_t kMaxTokenizerBytes = uint64_t{64} << 20;

/// Reads a tokenizer file: one of Hugging Face's hub by its name (text/huggingface/folders/folder.h), a SentencePiece
/// model (.model), or JSON (.json), which is Hugging Face's tokenizer.json or, by its "type", a vocabulary of words,
/// characters or bytes. Of other names, a file that begins with { is JSON and any other a SentencePiece model. Of a
/// folder, reads the file that find_tokenizer() returns. Throws FileError that names the file.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);

}  // namespace attune
