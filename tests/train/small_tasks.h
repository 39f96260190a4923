#pragma once
// Tasks that tiny models of the other architectures learn in seconds.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attune/base/random.h"
#include "tests/train/training_run.h"

namespace attune {

/// What every small run shares: no limits, validations or checkpoints are near.
inline RunConfig small_config(Architecture architecture) {
  RunConfig config = default_config(architecture);
  config.model.d_model = 32;
  config.model.heads = 4;
  config.model.layers = 1;
  config.model.d_ff = 64;
  config.schedule = {.kind = ScheduleKind::constant, .learning_rate = 3e-3, .warmup_steps = 10};
  config.train.steps = 20;
  config.train.batch_tokens = 128;
  config.train.seed = 5;
  config.train.log_every = 5;
  return config;
}

/// Lines "label<TAB>words": the label is the first of "red", "green" and "blue" among words out of eight others.
inline void write_keyword_text(const std::filesystem::path& file, int64_t lines, uint64_t seed) {
  const std::vector<std::string> labels = {"red", "green", "blue"};
  Random random(seed);
  std::string text;
  for (int64_t i = 0; i < lines; ++i) {
    std::vector<std::string> words(3 + random.below(5));
    for (std::string& word : words) word = std::string(1, static_cast<char>('a' + random.below(8)));
    const std::string& label = labels[random.below(3)];
    words[random.below(words.size())] = label;
    text += label + "\t";
    for (const std::string& word : words) text += word + " ";
    text.back() = '\n';
  }
  write_file(file, text);
}

inline RunConfig keyword_config(const TemporaryFolder& folder) {
  RunConfig config = small_config(Architecture::encoder_classifier);
  config.data.train_files = {(folder / "train.tsv").string()};
  config.data.valid_files = {(folder / "valid.tsv").string()};
  config.data.tokenizer_type = TokenizerKind::whitespace;
  return config;
}

/// Lines of pairs of words, the second of which follows from the first: "a A c C b B".
inline void write_pairs_text(const std::filesystem::path& file, int64_t lines, uint64_t seed) {
  Random random(seed);
  std::string text;
  for (int64_t i = 0; i < lines; ++i) {
    for (uint64_t n = 2 + random.below(3); n > 0; --n) {
      const auto letter = static_cast<char>(random.below(6));
      text += fmt::format("{} {} ", static_cast<char>('a' + letter), static_cast<char>('A' + letter));
    }
    text.back() = '\n';
  }
  write_file(file, text);
}

inline RunConfig pairs_config(const TemporaryFolder& folder) {
  RunConfig config = small_config(Architecture::encoder_masked_lm);
  config.data.train_files = {(folder / "train.txt").string()};
  config.data.valid_files = {(folder / "valid.txt").string()};
  config.data.tokenizer_type = TokenizerKind::whitespace;
  return config;
}

inline constexpr const char* kRhyme = "The cat sat on the mat.\nThe dog ran in the fog.\nA bat hid in a hat.\n";

/// A rhyme again and again, as characters.
inline RunConfig rhyme_config(const TemporaryFolder& folder) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += kRhyme;
  write_file(folder / "rhyme.txt", text);
  RunConfig config = small_config(Architecture::decoder_lm);
  config.model.context_length = 32;
  config.data.train_files = {(folder / "rhyme.txt").string()};
  config.data.valid_fraction = 0.1;
  config.data.tokenizer_type = TokenizerKind::characters;
  return config;
}

/// Steps 1 to 20 at once and in two parts leave the same bits.
inline void expect_resume_is_exact(RunConfig config, const TemporaryFolder& folder) {
  config.train.steps = 20;
  config.train.valid_every = 5;
  config.train.checkpoint_every = 5;
  const TrainedRun whole = train(config, folder / "whole");
  RunConfig part = config;
  part.train.steps = 10;
  train(part, folder / "parts");
  const TrainedRun rest = train(config, folder / "parts", true);
  EXPECT_EQ(rest.seen.start.step, 10);
  EXPECT_EQ(rest.seen.steps.size(), 10);
  EXPECT_EQ(rest.result.step, 20);
  EXPECT_EQ(whole.seen.validations.size(), 4);
  EXPECT_EQ(tensors_of(checkpoint_file(folder / "parts", 20)), tensors_of(checkpoint_file(folder / "whole", 20)));
  EXPECT_EQ(tensors_of(folder / "parts" / "model" / "model.safetensors"),
            tensors_of(folder / "whole" / "model" / "model.safetensors"));
  EXPECT_EQ(metrics_of(folder / "parts"), metrics_of(folder / "whole"));
  EXPECT_EQ(rest.result.best_step, whole.result.best_step);
  EXPECT_EQ(rest.result.best_value, whole.result.best_value);
}

}  // namespace attune
