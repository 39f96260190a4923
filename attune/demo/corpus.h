#pragma once
// A corpus of English-German sentence pairs that needs no download: drawn from a hand-written grammar of both
// languages. Each pair is rendered twice from one abstract structure, so the German is a function of the English
// sentence, and a small model can learn it. "You" is always the formal "Sie"; a past tense is a Präteritum in
// statements and a Perfekt in questions; "is reading" and "reads" both give "liest".

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace attune {

/// One English line and its German translation, UTF-8, natural casing and punctuation, 4 to 18 English words.
struct SentencePair {
  std::string source;
  std::string target;
  /// Which words translate each other: (English word, German word), counted from 0, rising. Spaces separate words.
  std::vector<std::pair<int32_t, int32_t>> alignment;
};

struct GrammarCorpus {
  std::vector<SentencePair> train, valid, test;
};

/// The most pairs that one corpus can have. The grammar itself can draw many more; memory is the limit.
inline constexpr int64_t kMaxGrammarPairs = 1'000'000;

/// Draws train + valid + test pairs, no two of which share a source or a target: a held-out sentence never occurs in
/// `train`, neither in English nor in German. The same arguments give the same pairs on every platform, and `test` and
/// `valid` do not depend on how many pairs `train` has. Throws ConfigError for a negative count, or for more than
/// kMaxGrammarPairs in all.
GrammarCorpus grammar_corpus(int64_t train, int64_t valid, int64_t test, uint64_t seed);

}  // namespace attune
