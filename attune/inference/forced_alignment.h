#pragma once
// Word alignments of sentences with translations that are given.

#include <memory>
#include <string>
#include <vector>

#include "attune/text/word_alignment.h"

namespace attune {

class Translator;
class TranslationRequests;
struct TranslateOptions;

struct ForcedAlignment {
  WordAlignment words;                            // as TranslateOptions::alignments gives them
  std::vector<std::vector<WordAlignment>> heads;  // of each head of each layer's cross-attention, [layers][heads]
};

/// Aligns by teacher forcing: the decoder reads the given translation, and each of its tokens is aligned with the
/// source token that gets the most attention when it is predicted.
class ForcedAligner {
 public:
  /// The translator has to outlive this. The options say the languages and, as max_source_tokens, how many
  /// tokens a sentence may have on either side.
  explicit ForcedAligner(const Translator& translator);
  ForcedAligner(const Translator& translator, const TranslateOptions& options);
  ~ForcedAligner();

  /// One pair of sentences; no links where one of them has no tokens. Memory grows with the product of their lengths.
  /// Throws DataError beginning with `name` for a sentence that is too long or not valid UTF-8.
  ForcedAlignment align(const std::string& source, const std::string& target, const std::string& name) const;

  /// What ForcedAlignment::words are read from: "layer 2, head 1" or "mean of layer 6".
  std::string origin() const;

 private:
  const Translator& translator_;
  std::unique_ptr<const TranslationRequests> requests_;
};

}  // namespace attune
