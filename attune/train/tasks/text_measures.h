#pragma once
// What is counted of a training text before there is a configuration to train with.

#include <cstdint>
#include <optional>

#include "attune/train/config.h"

namespace attune {

struct TextMeasures {
  Architecture architecture = Architecture::encoder_decoder;
  int64_t examples = 0;               // pairs, labelled texts, or lines
  int64_t words = 0;                  // separated by white space; of pairs those of both sides
  int64_t bytes = 0;                  // of the same texts
  int64_t characters = 0;             // likewise, line ends not counted
  int64_t distinct_characters = 0;    // that are not white space
  int64_t subword_marks = 0;          // words that end with "@@", as subword-nmt cuts them
  bool separate_punctuation = false;  // "a dog ." as tokenizers write it, see TextStyle
  bool regression = false;            // the texts have numbers in place of labels
  int processors = 1;                 // that training may use
  bool avx512 = true;                 // they have vectors of 512 bits

  // What the user has set; the rest is chosen to go with it.
  std::optional<bool> validates = {};  // false: there is to be no validation; none: it is to be chosen
  std::optional<TokenizerKind> tokenizer_type = {};
  std::optional<int64_t> d_model = {}, steps = {}, epochs = {}, batch_tokens = {};
  int64_t accumulate = 1;  // batches of an update
  std::optional<ScheduleKind> schedule = {};
  std::optional<double> learning_rate = {};  // schedule.learning_rate
  int64_t average_checkpoints = 0;           // the model is to be the mean of so many; 0 or 1: off
  bool has_tokenizer = false;                // a file, so that none is learnt from the text
  bool joint_vocab = true;                   // of pairs: one tokenizer for both sides
};

/// Counts the text that config.data names, for config.model's architecture and this machine. Reads all of it; memory
/// holds a line. Throws FileError, DataError, and ConfigError where no file is named.
TextMeasures measure_text(const RunConfig& config);

}  // namespace attune
