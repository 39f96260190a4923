// attune demo-corpus: writes the embedded English-German corpus.

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/cli/command.h"
#include "attune/cli/text_output.h"
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

std::string side_of(const std::vector<SentencePair>& pairs, std::string SentencePair::*side) {
  std::string text;
  for (const SentencePair& pair : pairs) text += pair.*side + "\n";
  return text;
}

std::string alignments_of(const std::vector<SentencePair>& pairs) {
  std::string text;
  for (const SentencePair& pair : pairs) text += pharaoh(pair.alignment) + "\n";
  return text;
}

/// Throws ConfigError for a file that is there with another text: it may be somebody's own. The same command may run
/// twice.
void refuse_other_text(const std::filesystem::path& path, const std::string& text) {
  if (is_there(path) && (file_bytes(path) != static_cast<int64_t>(text.size()) || read_file(path) != text))
    fail<ConfigError>("{}: is there with another text: name another folder with --out, or remove it", path.string());
}

int run(const Options& options) {
  const GrammarCorpus corpus = grammar_corpus(options.train, options.valid, options.test, options.seed);
  const std::filesystem::path out = options.out;
  std::vector<std::pair<std::filesystem::path, std::string>> files;
  for (const auto& [name, pairs] :
       {std::pair{"train", &corpus.train}, {"valid", &corpus.valid}, {"test", &corpus.test}}) {
    files.emplace_back(out / (std::string(name) + ".en"), side_of(*pairs, &SentencePair::source));
    files.emplace_back(out / (std::string(name) + ".de"), side_of(*pairs, &SentencePair::target));
    files.emplace_back(out / (std::string(name) + ".align"), alignments_of(*pairs));
  }
  for (const auto& [path, text] : files) refuse_other_text(path, text);
  make_directories(out);
  for (const auto& [path, text] : files) write_file(path, text);
  std::cerr << "wrote " << corpus.train.size() << " + " << corpus.valid.size() << " + " << corpus.test.size()
            << " English-German pairs to " << one_line(out.string()) << "\n";
  return 0;
}

}  // namespace

void add_demo_corpus(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, "demo-corpus", "Write an English-German corpus made from a grammar",
                                  "  attune demo-corpus --out runs/demo/data\n"
                                  "  attune demo-corpus --out data --train 100000 --seed 7",
                                  [options] { return run(*options); });
  command
      ->add_option("--out", options->out,
                   "Folder for train, valid and test, .en, .de and .align; files there that differ are refused")
      ->required();
  command->add_option("--train", options->train, "Pairs for training")->capture_default_str();
  command->add_option("--valid", options->valid, "Pairs for validation, not in training")->capture_default_str();
  command->add_option("--test", options->test, "Pairs for testing, in neither")->capture_default_str();
  command->add_option("--seed", options->seed, "Another seed, another corpus")->capture_default_str();
}

}  // namespace attune::cli
