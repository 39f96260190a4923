#pragma once
// The configuration of a run that its user has not configured, chosen from the amount of text. docs/training.md says
// the same for users.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "attune/base/json.h"
#include "attune/train/tasks/text_measures.h"

namespace attune {

/// One key of the configuration. Those without a reason belong to a recipe that does not depend on the text.
struct Choice {
  std::string key;  // "model.d_model"
  Json value;
  std::string why;  // for the user; "": no reason
};

/// Chooses what default_config() of the architecture leaves open or has too large for small text: size, dropout,
/// vocabulary, batch, learning rate and length of the run. A pure function. Every number follows a power of the amount
/// of text through a size at which the recipe was measured (docs/results/quality.md), between bounds, so that a little
/// more text changes little:
///   - small text wants narrow models, few merges and strong dropout: Sennrich & Zhang 2019, "Revisiting Low-Resource
///     NMT"; Wu et al. 2021, "Good for Misconceived Reasons", whose best model for 29,000 pairs has d_model 128;
///   - vocabularies grow slowly with the text: Gowda & May 2020, "Finding the Optimal Vocabulary Size for NMT"; Ding et
///     al. 2019, "A Call for Prudent Choice of Subword Merge Operations";
///   - parameters and predictions grow together: Hoffmann et al. 2022; text may be read several times, each time for
///     less: Muennighoff et al. 2023;
///   - batches grow with the text and the learning rate falls with the width: McCandlish et al. 2018; Yang et al. 2022.
/// Text that the processors would not read often enough in some hours gets the model and the number of updates of a
/// smaller text. For the same words, a longer text never gets a smaller model, vocabulary or number of updates.
std::vector<Choice> choose_config(const TextMeasures& text);

/// A run for given text: `text` has the sections that name it, and model.architecture.
struct AutomaticConfig {
  RunConfig config;
  std::vector<Choice> choices;  // those with a reason that assignments and preset do not replace
};

/// Measures the text, chooses, and puts the preset and the assignments above what was chosen; a preset has its own
/// model and recipe, so that only [data] and [train] are chosen beside it. Throws ConfigError where they name another
/// text or architecture, or a model to begin with, and what measure_text() and read_training_config() throw.
AutomaticConfig read_automatic_config(const Json& text, const std::vector<std::string>& overrides,
                                      std::string_view preset = {});

}  // namespace attune
