#pragma once
// A text that grows by tokens, up to a stop string.

#include <functional>
#include <string>
#include <string_view>

#include "attune/inference/decoding/decoding_request.h"
#include "attune/inference/incremental_decoder.h"
#include "attune/inference/stop_strings.h"
#include "attune/inference/text_generator.h"

namespace attune {

class GrowingText {
 public:
  /// `on_text` is called with each addition as soon as it is certain, from the thread that pushes; it may be empty.
  GrowingText(IncrementalDecoder decoder, StopStrings stop, std::function<void(std::string_view added)> on_text = {})
      : decoder_(std::move(decoder)), stop_(std::move(stop)), on_text_(std::move(on_text)) {}

  /// The next token, for DecodingRequest::on_token; false where a stop string ends the text.
  bool push(const TokenEvent& event) {
    if (event.end != FinishReason::eos) add(stop_.push(decoder_.push(event.token)));
    if (event.end || stop_.found()) finish();  // what waited may have the stop string, or be the rest of its token
    return !stop_.found();
  }
  /// Ends the text. Does nothing the second time.
  void finish() {
    if (finished_) return;
    finished_ = true;
    if (stop_.found() && !stop_.keeps()) return;
    const std::string rest = decoder_.finish();
    add(stop_.found() ? rest : stop_.push(rest));
    add(stop_.finish());
  }
  /// The text up to now, with the tokens that it was made of.
  GeneratedText result(SampledTokens tokens) {
    finish();
    return {.text = std::move(text_),
            .tokens = std::move(tokens.tokens),
            .finish_reason = stop_.found() ? FinishReason::stop : tokens.finish_reason};
  }
  const std::string& text() const { return text_; }

 private:
  void add(const std::string& piece) {
    text_ += piece;
    if (on_text_ && !piece.empty()) on_text_(piece);
  }

  IncrementalDecoder decoder_;
  StopStrings stop_;
  std::function<void(std::string_view)> on_text_;
  std::string text_;
  bool finished_ = false;
};

}  // namespace attune
