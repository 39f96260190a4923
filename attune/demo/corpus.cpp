#include "attune/demo/corpus.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "attune/base/fail.h"
#include "attune/base/random.h"
#include "attune/demo/writer.h"

namespace attune {
namespace {

constexpr int64_t kMinWords = 4;
constexpr int64_t kMaxWords = 18;

bool fitting_length(std::string_view source) {
  const int64_t words = std::ranges::count(source, ' ') + 1;
  return words >= kMinWords && words <= kMaxWords;
}

void check_counts(int64_t train, int64_t valid, int64_t test) {
  const std::pair<const char*, int64_t> counts[] = {{"train", train}, {"valid", valid}, {"test", test}};
  int64_t left = kMaxGrammarPairs;
  for (const auto& [name, count] : counts) {
    if (count < 0) fail<ConfigError>("grammar_corpus: {} = {} is negative", name, count);
    if (count > left) {
      fail<ConfigError>("grammar_corpus: train = {}, valid = {}, test = {} are more than {} pairs in all", train, valid,
                        test, kMaxGrammarPairs);
    }
    left -= count;
  }
}

}  // namespace

GrammarCorpus grammar_corpus(int64_t train, int64_t valid, int64_t test, uint64_t seed) {
  check_counts(train, valid, test);
  Random random(seed);
  grammar::Writer writer(random);
  std::unordered_set<std::string> sources, targets;
  const auto draw = [&](int64_t count) {
    std::vector<SentencePair> pairs;
    pairs.reserve(static_cast<size_t>(count));
    while (std::ssize(pairs) < count) {
      SentencePair pair = writer.sentence();
      if (!fitting_length(pair.source) || sources.contains(pair.source) || targets.contains(pair.target)) continue;
      sources.insert(pair.source);
      targets.insert(pair.target);
      pairs.push_back(std::move(pair));
    }
    return pairs;
  };
  GrammarCorpus corpus;
  corpus.test = draw(test);  // held-out pairs first, so that they do not depend on the size of train
  corpus.valid = draw(valid);
  corpus.train = draw(train);
  return corpus;
}

}  // namespace attune
