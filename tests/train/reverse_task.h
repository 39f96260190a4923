#pragma once
// A task that a tiny model learns in seconds: say a line of letters backwards.

#include <algorithm>
#include <string>
#include <vector>

#include "attune/base/random.h"
#include "attune/text/text_file.h"
#include "attune/text/word_alignment.h"
#include "tests/train/training_run.h"

namespace attune {

/// Writes <name>.src and <name>.tgt with `lines` lines of `shortest` to `longest` words out of eight.
inline void write_reverse_text(const TemporaryFolder& folder, const std::string& name, int64_t lines, int64_t shortest,
                               int64_t longest, uint64_t seed) {
  Random random(seed);
  std::string source, target;
  for (int64_t i = 0; i < lines; ++i) {
    std::vector<std::string> words(static_cast<size_t>(shortest) +
                                   random.below(static_cast<uint64_t>(longest - shortest + 1)));
    for (std::string& word : words) word = std::string(1, static_cast<char>('a' + random.below(8)));
    for (const std::string& word : words) source += word + " ";
    std::reverse(words.begin(), words.end());
    for (const std::string& word : words) target += word + " ";
    source.back() = target.back() = '\n';
  }
  write_file(folder / (name + ".src"), source);
  write_file(folder / (name + ".tgt"), target);
}

/// Writes the word alignments of a source file of that text beside it, with the name's end ".align".
inline void write_reversed_alignments(const std::filesystem::path& source) {
  std::string text;
  for (const std::string& line : read_lines(source)) {
    const auto words = static_cast<int32_t>(count_words(line));
    WordAlignment alignment;
    for (int32_t i = 0; i < words; ++i) alignment.emplace_back(i, words - 1 - i);
    text += pharaoh(alignment) + "\n";
  }
  write_file(source.string() + ".align", text);
}

/// A small model on that text, with every kind of dropout. No limits, validations or checkpoints are near.
inline RunConfig reverse_config(const TemporaryFolder& folder) {
  RunConfig config;
  config.model = {.d_model = 32, .heads = 4, .layers = 1, .d_ff = 64};
  config.data.train_source = {(folder / "train.src").string()};
  config.data.train_target = {(folder / "train.tgt").string()};
  config.data.valid_source = {(folder / "valid.src").string()};
  config.data.valid_target = {(folder / "valid.tgt").string()};
  config.data.tokenizer_type = TokenizerKind::whitespace;
  config.schedule = {.kind = ScheduleKind::constant, .learning_rate = 3e-3, .warmup_steps = 10};
  config.train = {
      .steps = 20, .batch_tokens = 128, .seed = 5, .log_every = 5, .valid_every = 1000, .checkpoint_every = 1000};
  return config;
}

/// Writes the texts of that configuration, with lines of 2 to 5 words, and returns it.
inline RunConfig make_reverse_task(const TemporaryFolder& folder, int64_t train_lines, int64_t valid_lines) {
  write_reverse_text(folder, "train", train_lines, 2, 5, 1);
  write_reverse_text(folder, "valid", valid_lines, 2, 5, 2);
  return reverse_config(folder);
}

}  // namespace attune
