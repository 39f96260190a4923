#pragma once
// Makes requests to the scheduler of sentences, and translations of its results.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attune/inference/decoding/decoding_request.h"
#include "attune/inference/translator.h"

namespace attune {

/// How many sentences are decoded together, and in how many lanes, by the options' batch_sentences and batch_tokens.
BatchLimits batch_limits(const TranslateOptions& options);

/// What the sentences of a call have in common: its options, in terms of tokens.
class TranslationRequests {
 public:
  /// The translator has to outlive this. Throws ConfigError for options that do not fit; does not read
  /// options.constraints.
  TranslationRequests(const Translator& translator, const TranslateOptions& options);

  /// What the encoder reads of a sentence, eos included; nothing of a sentence without tokens. Throws DataError
  /// beginning with `name` for one that is not valid UTF-8, TooManyTokens for one that is too long.
  std::vector<int32_t> encode(const std::string& sentence, const std::string& name) const;
  /// Throws ConfigError beginning with `name` for constraints that do not fit the options.
  SentenceConstraints encode(const TranslationConstraints& constraints, const std::string& name) const;
  /// What the decoder has read once it has predicted `translation`, for a pass over both: the start token, the token
  /// that every output begins with, if there is one, and those of the text. Throws DataError beginning with `name` for
  /// one that is not valid UTF-8, TooManyTokens for one with more than max_source_tokens or than the model has
  /// positions.
  std::vector<int32_t> decoder_input(const std::string& translation, const std::string& name) const;
  /// The same for ScoredText::tokens.
  std::vector<int32_t> decoder_input(std::span<const int32_t> tokens) const;
  /// The tokens of a sentence with those around it, as the encoder reads it; does not check the sentence.
  std::vector<int32_t> read_by_encoder(std::string_view sentence) const;
  /// The token that the decoder reads first, and the one that ends a translation.
  int32_t start_token() const { return start_token_; }
  int32_t end_token() const { return end_token_; }
  /// A request without on_done, for a source that is not empty.
  DecodingRequest request(std::vector<int32_t> source, SentenceConstraints constraints) const;
  /// What a request without an error has found for its source.
  Translation translation(const DecodingResult& found, const std::vector<int32_t>& source) const;

  const TranslateOptions& options() const { return options_; }
  const BatchLimits& batch() const { return batch_; }

 private:
  const Translator& translator_;
  TranslateOptions options_;
  int32_t adapter_;
  TokenSequences required_;  // of every sentence
  std::shared_ptr<const BeamSearchOptions> search_options_;
  int32_t start_token_, end_token_, source_end_, source_language_;
  int64_t frame_;  // tokens that the encoder reads beside those of a sentence
  BatchLimits batch_;
};

}  // namespace attune
