#pragma once
// The search options of `translate` and `evaluate`.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "attune/inference/translator.h"

namespace attune::cli {

struct GenerationOptions {
  std::optional<int64_t> beam_size;  // options that are not given come from the model's generation_config.json
  std::optional<double> length_penalty;
  std::optional<int64_t> max_length;
  std::optional<double> coverage_penalty, patience, diversity_penalty, repetition_penalty;
  std::optional<int64_t> beam_groups, min_length, no_repeat_ngram_size;
  std::string source_language, target_language;  // of models of many languages; "": as the folder says
  std::string early_stopping;
  std::string precision;  // "": float32
  std::string device;     // "": the CPU
  int64_t batch_sentences = 64;
  int64_t threads = 0;  // 0: default_thread_count()

  void add_to(CLI::App& command);
  /// Throws ConfigError.
  TranslateOptions for_model(const Translator& translator) const;
};

}  // namespace attune::cli
