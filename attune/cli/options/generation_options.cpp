#include "attune/cli/options/generation_options.h"

#include "attune/base/fail.h"
#include "attune/base/fields.h"
#include "attune/cli/command.h"
#include "attune/cli/options/device_option.h"
#include "attune/cli/options/precision_option.h"
#include "attune/cli/options/threads_option.h"

namespace attune::cli {

void GenerationOptions::add_to(CLI::App& command) {
  command.add_option("--beam-size", beam_size, "Hypotheses kept in the search; 1: greedy [the model's]");
  command.add_option("--length-penalty", length_penalty, "0: none; larger favours longer translations [the model's]");
  command.add_option("--max-length", max_length, "Most tokens of a translation [the model's]");
  command.add_option("--min-length", min_length, "Fewest tokens of a translation [the model's]");
  command.add_option("--coverage-penalty", coverage_penalty,
                     "0: none; larger favours translations that attend to all of the source [the model's]");
  command.add_option(
      "--early-stopping", early_stopping,
      "When the search ends. bound: nothing better can come; first: beam-size translations are finished; "
      "patience: patience * beam-size are; heuristic: beam-size are, and no unfinished one scores above the worst of "
      "them at its present length [the model's]");
  command.add_option("--patience", patience, "Factor of --early-stopping patience [the model's]");
  command.add_option("--beam-groups", beam_groups, "Groups of diverse beam search; divides the beam [the model's]");
  command.add_option("--diversity-penalty", diversity_penalty,
                     "Cost of a token that an earlier group has taken [the model's]");
  command.add_option("--no-repeat-ngram-size", no_repeat_ngram_size,
                     "No n-gram of this size occurs twice; 0: no limit [the model's]");
  command.add_option("--repetition-penalty", repetition_penalty,
                     "Above 1: tokens that occurred are less likely [the model's]");
  command.add_option("--source-lang", source_language, "Language of the input, of models of many: deu_Latn, de_DE, de");
  command.add_option("--target-lang", target_language, "Language of the translations, likewise");
  command
      .add_option("--batch-size", batch_sentences,
                  "Sentences translated at once, of each thread; from 2 to 15: of all threads together")
      ->capture_default_str();
  add_device(command, device);
  add_precision(command, precision);
  add_threads(command, threads);
}

TranslateOptions GenerationOptions::for_model(const Translator& translator) const {
  if (batch_sentences < 1) fail<ConfigError>("--batch-size {}: needs a number from 1", batch_sentences);
  GenerationConfig generation = translator.generation();
  if (beam_size) generation.resize_beam(*beam_size);
  generation.length_penalty = length_penalty.value_or(generation.length_penalty);
  if (max_length) generation.limit_length(*max_length);
  generation.min_length = min_length.value_or(generation.min_length);
  generation.coverage_penalty = coverage_penalty.value_or(generation.coverage_penalty);
  generation.patience = patience.value_or(generation.patience);
  generation.beam_groups = beam_groups.value_or(generation.beam_groups);
  generation.diversity_penalty = diversity_penalty.value_or(generation.diversity_penalty);
  generation.no_repeat_ngram_size = no_repeat_ngram_size.value_or(generation.no_repeat_ngram_size);
  generation.repetition_penalty = repetition_penalty.value_or(generation.repetition_penalty);
  if (!early_stopping.empty()) generation.early_stopping = named<EarlyStopping>("--early-stopping", early_stopping);
  if (patience && generation.early_stopping != EarlyStopping::patience)
    fail<ConfigError>("--patience {}: needs --early-stopping patience, here it is {}", *patience,
                      enum_name(generation.early_stopping));
  generation.validate();
  TranslateOptions options;
  options.generation = generation;
  options.source_language = source_language;
  options.target_language = target_language;
  options.batch_sentences = batch_sentences;
  return options;
}

}  // namespace attune::cli
