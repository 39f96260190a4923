#pragma once
// Prompts as requests to the scheduler.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "attune/inference/decoding/decoding_request.h"
#include "attune/inference/growing_text.h"
#include "attune/inference/text_generator.h"

namespace attune {

/// What the prompts of a call have in common: its options, in terms of tokens.
class GenerationRequests {
 public:
  /// The generator has to outlive this. Throws ConfigError for options that do not fit; does not read options.on_text.
  GenerationRequests(const TextGenerator& generator, const GenerateOptions& options);

  /// Tokens of a prompt. Throws DataError beginning with `name` for one that is not valid UTF-8, TooManyTokens for one
  /// that is longer than the model's context; with `slide` the end of such a prompt is used.
  std::vector<int32_t> encode(const std::string& prompt, const std::string& name) const;
  /// The same for a prompt that is tokens already; DataError too for ids that the model does not have.
  std::vector<int32_t> checked(std::vector<int32_t> prompt, const std::string& name) const;
  /// A request for `samples` texts, the first of which is number `first_sample`; without on_token and on_done.
  DecodingRequest request(std::vector<int32_t> prompt, int64_t first_sample, int64_t samples) const;
  /// A text that continues the prompt.
  GrowingText text(const std::vector<int32_t>& prompt, std::function<void(std::string_view)> on_text) const;

  const GenerateOptions& options() const { return options_; }
  /// What request() copies into each request; a caller may change it before.
  SamplingRequest& sampling() { return sampling_; }

 private:
  const TextGenerator& generator_;
  GenerateOptions options_;
  int32_t adapter_;
  SamplingRequest sampling_;
};

}  // namespace attune
