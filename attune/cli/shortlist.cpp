// attune shortlist: which target tokens go with which source tokens.

#include "attune/inference/decoding/shortlist.h"
#include <fmt/format.h>
#include "attune/base/check.h"
#include "attune/cli/command.h"
#include "attune/cli/options/model_argument.h"
#include "attune/cli/text_output.h"
#include "attune/data/lexicon.h"
#include "attune/hub/open_folder.h"

namespace attune::cli {
namespace {

struct ShortlistCommand {
  std::string model, source, target, output;
  int64_t frequent = 100, sentences = 0;
  LexiconOptions lexicon;
};

int make_shortlist(const ShortlistCommand& command) {
  check_range<int64_t>("--frequent", command.frequent, 0, 1 << 20);
  check_range<int64_t>("--sentences", command.sentences, 0, int64_t{1} << 40);
  command.lexicon.validate();
  check_output(command.output, {command.model, command.source, command.target});
  check_writable(command.output);
  const ModelFolder model = open_model_folder(command.model);
  ParallelCorpus corpus =
      load_parallel_corpus({command.source}, {command.target}, *model.source_tokenizer, *model.target_tokenizer);
  if (command.sentences > 0 && static_cast<int64_t>(corpus.examples.size()) > command.sentences)
    corpus.examples.resize(static_cast<size_t>(command.sentences));
  const int64_t target_vocab = model.target_tokenizer->vocab_size();
  const Shortlist shortlist(
      learn_lexicon(corpus.examples, model.source_tokenizer->vocab_size(), target_vocab, command.lexicon),
      frequent_targets(corpus.examples, target_vocab, command.frequent), target_vocab);
  shortlist.save(command.output);

  double tokens = 0;
  for (const ParallelExample& e : corpus.examples) tokens += static_cast<double>(shortlist.targets_of(e.source).size());
  TextOutput output;
  output.line(fmt::format("{}: {} sentence pairs; a sentence has {:.0f} of {} target tokens on average",
                          one_line(command.output), corpus.examples.size(),
                          tokens / static_cast<double>(corpus.examples.size()), target_vocab));
  output.finish();
  return 0;
}

}  // namespace

void add_shortlist(CLI::App& app) {
  const auto c = std::make_shared<ShortlistCommand>();
  CLI::App* command = add_command(
      app, "shortlist", "Learn which target tokens go with which source tokens, for attune translate --shortlist",
      "  attune shortlist runs/demo/model --source train.en --target train.de --output runs/demo/shortlist\n"
      "  attune translate runs/demo/model --shortlist runs/demo/shortlist < news.en",
      [c] { return make_shortlist(*c); });
  add_model(*command, c->model, "Folder of the model, for its tokenizers")->required();
  command->add_option("--source", c->source, "Text, plain or gzip")->required();
  command->add_option("--target", c->target, "Its translation, line by line")->required();
  command->add_option("--output", c->output, "File for the shortlist, written whole or not at all")->required();
  command->add_option("--best", c->lexicon.best, "Targets of each source token, at most")->capture_default_str();
  command->add_option("--frequent", c->frequent, "Frequent targets that every sentence has")->capture_default_str();
  command->add_option("--iterations", c->lexicon.iterations, "Of the training of IBM model 1")->capture_default_str();
  command->add_option("--sentences", c->sentences, "Pairs to learn from; 0: all")->capture_default_str();
}

}  // namespace attune::cli
