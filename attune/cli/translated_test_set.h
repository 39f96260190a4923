#pragma once
// A test set, translated with the models of several runs.

#include <string>
#include <vector>

#include "attune/cli/options/generation_options.h"
#include "attune/metrics/bleu.h"

namespace attune::cli {

/// Files with as many lines, plain or gzip.
struct TestSet {
  std::string source, reference;
};

struct TranslatedTestSet {
  BleuTokenizer bleu_tokenizer = BleuTokenizer::v13a;  // one for all runs
  std::vector<std::vector<BleuCounts>> counts;         // of each run, of each sentence
};

/// Translates the test set with the model of each run, given by their folders, and counts what BLEU is made of. Throws
/// ConfigError where a run has no model, DataError where the files have not the same number of lines.
TranslatedTestSet translate_test_set(const std::vector<std::string>& runs, const TestSet& set,
                                     const GenerationOptions& generation);

}  // namespace attune::cli
