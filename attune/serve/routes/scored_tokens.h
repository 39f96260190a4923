#pragma once
// The tokens of a text with their log probabilities, as OpenAI's API shows them.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attune/base/json.h"
#include "attune/inference/decoding/decoding_request.h"
#include "attune/inference/incremental_decoder.h"
#include "attune/text/tokenizer.h"

namespace attune::serve {

/// A token is shown as what it adds to the text, so that all together are the text. Where several tokens make a
/// character, the last one has it. The text of a run of byte tokens (<0xE2>) of Hugging Face is certain only at the
/// run's end: the last token of the run has all of it. Special tokens, which are no text, have their names. A token
/// that was not taken is shown as if it ended the text.
class ScoredTokens {
 public:
  /// For the text that continues `prompt`; `eos_is_line_end`: see IncrementalDecoder. The tokenizer has to outlive
  /// this.
  ScoredTokens(const Tokenizer& tokenizer, std::span<const int32_t> prompt, bool eos_is_line_end)
      : tokenizer_(tokenizer), eos_is_line_end_(eos_is_line_end), decoder_(tokenizer, prompt, eos_is_line_end) {}

  /// Adds a token; the event has scores. Throws DataError on an id outside the vocabulary.
  void add(const TokenEvent& event);
  /// Ends the text: its last token gets the bytes that are no whole character. Does nothing the second time.
  void finish();
  /// Whether no token that was added can become longer.
  bool are_certain() const;

  /// Returns the tokens since the last call as "logprobs" has them: of /v1/chat/completions with `chat`, else of
  /// /v1/completions. Null where there are none.
  Json take(bool chat);

 private:
  struct Alternative {
    int32_t id;
    std::string text;
    double log_probability;
  };
  struct Token {
    int32_t id;
    std::string text;
    bool is_name;  // and no part of the text
    double log_probability;
    std::vector<Alternative> likeliest;  // best first; the token itself may be among them
  };
  bool is_shown_by_name(int32_t id) const;
  std::string shown(int32_t id, const IncrementalDecoder& before, std::string_view waiting) const;
  bool give_to_last(std::string_view text);

  const Tokenizer& tokenizer_;
  bool eos_is_line_end_;
  IncrementalDecoder decoder_;
  std::vector<Token> tokens_;  // that are not yet taken
  int64_t characters_ = 0;     // of those that are, for text_offset
};

}  // namespace attune::serve
