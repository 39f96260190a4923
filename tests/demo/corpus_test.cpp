#include "attune/demo/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "attune/base/error.h"
#include "attune/demo/sentences.h"
#include "attune/demo/writer.h"
#include "tests/demo/links.h"

namespace attune {
namespace {

using namespace grammar;

/// Follows RFC 3629 for the two lengths that English and German need.
bool is_utf8_latin(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) continue;
    if (byte < 0xC2 || byte > 0xC3 || ++i == text.size()) return false;
    if ((static_cast<unsigned char>(text[i]) & 0xC0u) != 0x80u) return false;
  }
  return true;
}

bool is_line(std::string_view text) {
  const bool closed = text.ends_with(".") || text.ends_with("?");
  const auto first = static_cast<unsigned char>(text[0]);
  const bool capital = (first >= 'A' && first <= 'Z') || (first == 0xC3 && static_cast<unsigned char>(text[1]) < 0xA0);
  return closed && capital && text.find("  ") == std::string_view::npos && text.find(" ,") == std::string_view::npos &&
         text.find(",,") == std::string_view::npos && text.find(" .") == std::string_view::npos &&
         text.find('\n') == std::string_view::npos && is_utf8_latin(text);
}

TEST(GrammarCorpus, SizesAndDisjointSplits) {
  const GrammarCorpus corpus = grammar_corpus(20000, 300, 200, 42);
  EXPECT_EQ(corpus.train.size(), 20000u);
  EXPECT_EQ(corpus.valid.size(), 300u);
  EXPECT_EQ(corpus.test.size(), 200u);
  std::set<std::string> sources, targets;
  for (const auto* split : {&corpus.train, &corpus.valid, &corpus.test}) {
    for (const SentencePair& p : *split) {
      EXPECT_TRUE(sources.insert(p.source).second) << p.source;
      EXPECT_TRUE(targets.insert(p.target).second) << p.target;
    }
  }
}

TEST(GrammarCorpus, EveryLineIsWellFormed) {
  double source_words = 0, target_words = 0;
  std::set<std::string> openings;
  const GrammarCorpus corpus = grammar_corpus(20000, 0, 0, 3);
  for (const SentencePair& p : corpus.train) {
    EXPECT_TRUE(is_line(p.source)) << p.source;
    EXPECT_TRUE(is_line(p.target)) << p.target;
    EXPECT_EQ(p.source.back(), p.target.back()) << p.source;
    EXPECT_GE(words(p.source), 4) << p.source;
    EXPECT_LE(words(p.source), 18) << p.source;
    source_words += words(p.source);
    target_words += words(p.target);
    openings.insert(p.source.substr(0, 12));
  }
  EXPECT_GT(source_words / 20000, 7);
  EXPECT_LT(source_words / 20000, 11);
  EXPECT_GT(target_words / 20000, 6);
  EXPECT_LT(target_words / 20000, 11);
  EXPECT_GT(openings.size(), 2000u);  // not one template
}

TEST(GrammarCorpus, UsesItsWholeLexicon) {
  std::set<std::string> seen;
  for (const SentencePair& p : grammar_corpus(20000, 0, 0, 5).train) {
    std::string word;
    for (const char c : p.target) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (static_cast<unsigned char>(c) & 0x80u);
      if (letter) {
        word += c;
      } else {
        seen.insert(std::exchange(word, ""));
      }
    }
  }
  for (const Noun& n : nouns()) EXPECT_TRUE(seen.contains(n.german)) << n.german;
  for (const Verb& v : verbs()) {
    const char* form = (v.traits & kStative) ? v.german_er : v.german_participle;  // no "hat gekannt"
    EXPECT_TRUE(seen.contains(form)) << form;
  }
  for (const Adjective& a : adjectives()) EXPECT_TRUE(seen.contains(std::string(a.german_stem) + "en")) << a.german;
}

TEST(GrammarCorpus, TargetIsAFunctionOfTheSource) {
  Random random(17);
  Writer writer(random);
  std::map<std::string, std::string> target_of;
  int repeated = 0;
  for (int i = 0; i < 100000; ++i) {
    const SentencePair p = writer.sentence();
    const auto [at, is_new] = target_of.emplace(p.source, p.target);
    repeated += is_new ? 0 : 1;
    EXPECT_EQ(at->second, p.target) << p.source;
  }
  EXPECT_GT(repeated, 100);    // so that the comparison above has something to compare
  EXPECT_LT(repeated, 10000);  // and the grammar is rich
}

TEST(GrammarCorpus, SameSeedSamePairs) {
  const GrammarCorpus a = grammar_corpus(50, 20, 10, 9);
  const GrammarCorpus b = grammar_corpus(200, 20, 10, 9);
  const GrammarCorpus c = grammar_corpus(50, 20, 10, 10);
  const auto same = [](const std::vector<SentencePair>& x, const std::vector<SentencePair>& y) {
    return std::ranges::equal(x, y, [](const SentencePair& p, const SentencePair& q) {
      return p.source == q.source && p.target == q.target;
    });
  };
  EXPECT_TRUE(same(a.test, b.test));
  EXPECT_TRUE(same(a.valid, b.valid));
  EXPECT_TRUE(same(a.train, std::vector(b.train.begin(), b.train.begin() + 50)));
  EXPECT_FALSE(same(a.test, c.test));
}

/// Pins the drawing order, which must not depend on compiler or platform. Changes with the grammar.
TEST(GrammarCorpus, FirstPairsOfSeedOne) {
  const GrammarCorpus corpus = grammar_corpus(0, 0, 3, 1);
  EXPECT_EQ(corpus.test[0].source, "Did my strong boss sing on Friday?");
  EXPECT_EQ(links_of(corpus.test[0]),
            (Links{"Did=Hat", "my=mein", "strong=starker", "boss=Chef", "sing=gesungen?", "on=am", "Friday?=Freitag"}));
  EXPECT_EQ(corpus.test[0].target, "Hat mein starker Chef am Freitag gesungen?");
  EXPECT_EQ(corpus.test[1].source, "Why are you going to the hotel?");
  EXPECT_EQ(corpus.test[1].target, "Warum gehen Sie ins Hotel?");
  EXPECT_EQ(corpus.test[2].source, "Laura has never looked for keys.");
  EXPECT_EQ(corpus.test[2].target, "Laura hat noch nie Schlüssel gesucht.");
}

TEST(GrammarCorpus, RefusesImpossibleCounts) {
  EXPECT_THROW(grammar_corpus(-1, 0, 0, 1), ConfigError);
  EXPECT_THROW(grammar_corpus(0, 0, -5, 1), ConfigError);
  EXPECT_THROW(grammar_corpus(kMaxGrammarPairs, 1, 0, 1), ConfigError);
  EXPECT_THROW(grammar_corpus(INT64_MAX, INT64_MAX, INT64_MAX, 1), ConfigError);
  EXPECT_TRUE(grammar_corpus(0, 0, 0, 1).train.empty());
}

}  // namespace
}  // namespace attune
