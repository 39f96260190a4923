#pragma once
// Subword tokenization with SentencePiece (Kudo and Richardson 2018).

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attune/text/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace [[gnu::visibility("default")]] attune {

/// A SentencePiece model of any kind (unigram, BPE, characters, words), its text normalization included.
///
/// A model must have <unk>, <s> and </s>. By default, SentencePiece trains models without <pad>; then </s> serves as
/// the pad, since neither shows in decoded text.
class SentencePieceTokenizer final : public Tokenizer {
 public:
  /// Throws FileError that names the file.
  explicit SentencePieceTokenizer(const std::filesystem::path& file);
  /// From the bytes of a model; `name` is for messages.
  SentencePieceTokenizer(std::string model, const std::string& name);
  ~SentencePieceTokenizer() override;

  /// Throws DataError when the text is longer than 8 MiB.
  std::vector<int32_t> encode(std::string_view text) const override;
  int32_t vocab_size() const override;
  std::string piece(int32_t id) const override;
  std::string kind() const override { return "SentencePiece"; }
  std::string file_name() const override { return "tokenizer.model"; }
  void save(const std::filesystem::path& file) const override;
  /// The bytes of the model's file.
  const std::string& model() const { return model_; }

 private:
  std::string join(const std::vector<int>& ids) const override;

  std::string model_;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
};

struct SentencePieceOptions {
  enum class Kind { unigram, bpe };                                    // Kudo 2018; Sennrich et al. 2016
  enum class Normalization { nmt_nfkc, nmt_nfkc_cf, nfkc, identity };  // _cf: case folded

  Kind kind = Kind::unigram;
  int32_t vocab_size = 8000;        // at most, special tokens included; a small text yields fewer
  double character_coverage = 1.0;  // 0.98 to 1: share of the text's characters that get a piece; the rest become <unk>
  Normalization normalization = Normalization::nmt_nfkc;
  bool byte_fallback = false;         // unknown characters become UTF-8 bytes, for 256 pieces
  int32_t threads = 2;                // 1 to 128; the numbers of a unigram model depend on it in the last digits
  int64_t max_sentences = 1'000'000;  // a larger corpus is sampled
  uint64_t seed = 1;                  // of the sample
  int64_t max_bytes = kMostBytes;     // of the sample, which has fewer sentences if they are long; at least 4096
  static constexpr int64_t kMostBytes = int64_t{320} << 20;
  void validate() const;  // throws ConfigError
};

/// Learns a vocabulary with <pad> 0, <unk> 1, <s> 2 and </s> 3. Sentences longer than 4 KiB are learnt from in parts.
/// Prints nothing; the same text and options give the same model. Throws DataError when there is no text to learn from
/// or a sentence is not UTF-8, and ConfigError when vocab_size is less than the characters of the text need; the
/// message says how many they need.
std::unique_ptr<SentencePieceTokenizer> train_sentence_piece(const std::vector<std::string>& sentences,
                                                             const SentencePieceOptions& options = {});

/// The same from the lines of text files, plain or gzip.
std::unique_ptr<SentencePieceTokenizer> train_sentence_piece_from_files(const std::vector<std::filesystem::path>& files,
                                                                        const SentencePieceOptions& options = {});

}  // namespace attune
