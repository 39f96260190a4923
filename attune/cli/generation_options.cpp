#include "attune/cli/generation_options.h"

#include "attune/base/parallel.h"

namespace attune::cli {

void GenerationOptions::add_to(CLI::App& command) {
  command.add_option("--beam-size", beam_size, "Hypotheses kept in the search; 1: greedy [the model's]");
  command.add_option("--length-penalty", length_penalty, "0: none; more favours longer translations [the model's]");
  command.add_option("--max-length", max_length, "Most tokens of a translation [the model's]");
  command.add_option("--batch-size", batch_sentences, "Sentences translated at once")->capture_default_str();
  command.add_option("--threads", threads, "0: all")->capture_default_str();
}

TranslateOptions GenerationOptions::for_model(const Translator& translator) const {
  use_threads(threads);
  if (batch_sentences < 1) fail<ConfigError>("--batch-size {}: needs a number from 1", batch_sentences);
  GenerationConfig generation = translator.generation();
  generation.beam_size = beam_size.value_or(generation.beam_size);
  generation.length_penalty = length_penalty.value_or(generation.length_penalty);
  generation.max_length = max_length.value_or(generation.max_length);
  generation.validate();
  TranslateOptions options;
  options.generation = generation;
  options.batch_sentences = batch_sentences;
  return options;
}

void use_threads(int64_t threads) {
  if (threads < 0 || threads > 1024) fail<ConfigError>("--threads {}: needs a number from 0 to 1024", threads);
  if (threads > 0) set_thread_count(static_cast<int>(threads));
}

}  // namespace attune::cli
