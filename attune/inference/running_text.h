#pragma once
// Texts while they are generated.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attune/inference/incremental_decoder.h"
#include "attune/inference/stop_strings.h"
#include "attune/inference/text_generator.h"

namespace attune {

/// What is alike for all texts of a call.
struct GenerationRun {
  const TextGenerator& generator;
  const GenerateOptions& options;
  SamplingConfig sampling;
  std::vector<int32_t> never_drawn;

  size_t context() const { return static_cast<size_t>(generator.model().config().context_length); }
  bool interrupted() const { return options.interrupt != nullptr && options.interrupt->load(); }
};

struct RunningText {
  size_t index;   // in the result
  size_t prompt;  // among the prompts
  uint64_t sample;
  std::vector<int32_t> tokens;  // prompt and continuation
  size_t window_begin = 0;      // the first token that the model still sees
  IncrementalDecoder decoder;
  StopStrings stop;
  GeneratedText result = {};

  std::span<const int32_t> window() const { return std::span(tokens).subspan(window_begin); }
  /// Begins the window, where it does not fit, at its last half.
  void slide(size_t context);
  /// One more token; false when the text ends with it.
  bool accept(const GenerationRun& run, int32_t token);
  void finish(const GenerationRun& run, FinishReason reason);

 private:
  void add(const GenerationRun& run, const std::string& piece);
};

}  // namespace attune
