// attune demo-corpus: writes the embedded English-German corpus.

#include <iostream>

#include "attune/base/file.h"
#include "attune/cli/command.h"
#include "attune/demo/corpus.h"
#include "attune/text/word_alignment.h"

namespace attune::cli {
namespace {

struct Options {
  std::string out;
  int64_t train = 30000;
  int64_t valid = 500;
  int64_t test = 500;
  uint64_t seed = 1;
};

void write_side(const std::filesystem::path& path, const std::vector<SentencePair>& pairs,
                std::string SentencePair::*side) {
  std::string text;
  for (const SentencePair& pair : pairs) text += pair.*side + "\n";
  write_file(path, text);
}

void write_alignments(const std::filesystem::path& path, const std::vector<SentencePair>& pairs) {
  std::string text;
  for (const SentencePair& pair : pairs) text += pharaoh(pair.alignment) + "\n";
  write_file(path, text);
}

int run(const Options& options) {
  const GrammarCorpus corpus = grammar_corpus(options.train, options.valid, options.test, options.seed);
  const std::filesystem::path out = options.out;
  make_directories(out);
  for (const auto& [name, pairs] :
       {std::pair{"train", &corpus.train}, {"valid", &corpus.valid}, {"test", &corpus.test}}) {
    write_side(out / (std::string(name) + ".en"), *pairs, &SentencePair::source);
    write_side(out / (std::string(name) + ".de"), *pairs, &SentencePair::target);
    write_alignments(out / (std::string(name) + ".align"), *pairs);
  }
  std::cerr << "wrote " << corpus.train.size() << " + " << corpus.valid.size() << " + " << corpus.test.size()
            << " English-German pairs to " << out.string() << "\n";
  return 0;
}

}  // namespace

void add_demo_corpus(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, "demo-corpus", "Write an English-German corpus made from a grammar",
                                  "  attune demo-corpus --out runs/demo/data\n"
                                  "  attune demo-corpus --out data --train 100000 --seed 7",
                                  [options] { return run(*options); });
  command->add_option("--out", options->out, "Folder for train, valid and test, .en, .de and .align")->required();
  command->add_option("--train", options->train, "Pairs for training")->capture_default_str();
  command->add_option("--valid", options->valid, "Pairs for validation, not in training")->capture_default_str();
  command->add_option("--test", options->test, "Pairs for testing, in neither")->capture_default_str();
  command->add_option("--seed", options->seed, "Another seed, another corpus")->capture_default_str();
}

}  // namespace attune::cli
