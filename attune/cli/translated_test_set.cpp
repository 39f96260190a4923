#include "attune/cli/translated_test_set.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "attune/base/fail.h"
#include "attune/cli/options/device_option.h"
#include "attune/cli/options/precision_option.h"
#include "attune/cli/options/threads_option.h"
#include "attune/cli/run_metrics.h"
#include "attune/cli/text_output.h"
#include "attune/inference/translator.h"
#include "attune/text/text_file.h"
#include "attune/text/whitespace_tokenizer.h"

namespace attune::cli {
namespace {

Translator translator_of_run(const std::string& run, const SchedulerOptions& scheduling) {
  const std::optional<std::filesystem::path> model = model_of_run(run);
  if (!model) fail<ConfigError>("{}: the run has no model yet, which --source asks for", run);
  return Translator::load(*model, scheduling);
}

}  // namespace

TranslatedTestSet translate_test_set(const std::vector<std::string>& runs, const TestSet& set,
                                     const GenerationOptions& generation) {
  const std::vector<std::string> sources = read_lines(set.source);
  std::vector<std::string> references = read_lines(set.reference);
  if (sources.size() != references.size())
    fail<DataError>("{} has {} lines but {} has {}", set.source, sources.size(), set.reference, references.size());
  const ThreadScope threads = use_threads(generation.threads);
  const Device device = device_of(generation.device);
  const SchedulerOptions scheduling{.precision = precision_of(generation.precision, device), .device = device};
  std::vector<std::vector<std::string>> outputs;
  bool in_words = true;
  for (const std::string& run : runs) {
    const Translator translator = translator_of_run(run, scheduling);
    const Tokenizer& target = translator.target_tokenizer();
    std::vector<std::string>& of_run = outputs.emplace_back();
    for (const Translation& t : translator.translate(sources, generation.for_model(translator)))
      of_run.push_back(written_text(t.text(), "\t"));  // as evaluate
    // Where the model's tokens are subwords with a marker, joins the subwords of the references too. All runs share the
    // references.
    for (std::string& reference : references) reference = joined_text(target, reference);
    in_words = in_words && bleu_tokenizer_for(target) == BleuTokenizer::none;
  }
  // Scores by different tokenizers cannot be compared (Post 2018).
  TranslatedTestSet translated;
  if (in_words) translated.bleu_tokenizer = BleuTokenizer::none;
  for (const std::vector<std::string>& of_run : outputs)
    translated.counts.push_back(bleu_counts(of_run, references, translated.bleu_tokenizer));
  return translated;
}

}  // namespace attune::cli
