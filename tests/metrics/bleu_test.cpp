#include "attune/metrics/bleu.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "attune/base/error.h"
#include "attune/base/file.h"
#include "tests/support/paths.h"

namespace attune {
namespace {

using Texts = std::vector<std::string>;

/// Sentences with the figures of sacreBLEU, by data/make_metric_data.py.
nlohmann::json sacrebleu_data() {
  return nlohmann::json::parse(read_file(source_dir() / "tests/metrics/data/sacrebleu.json"));
}

void expect_equal(const BleuScore& found, const nlohmann::json& expected) {
  EXPECT_NEAR(found.score, expected.at("score").get<double>(), 1e-9);
  const auto precisions = expected.at("precisions").get<std::vector<double>>();
  ASSERT_EQ(precisions.size(), found.precisions.size());
  for (std::size_t n = 0; n < precisions.size(); ++n) EXPECT_NEAR(found.precisions[n], precisions[n], 1e-9) << n + 1;
  EXPECT_NEAR(found.brevity_penalty, expected.at("brevity_penalty").get<double>(), 1e-12);
  EXPECT_EQ(found.hypothesis_length, expected.at("hypothesis_length").get<int64_t>());
  EXPECT_EQ(found.reference_length, expected.at("reference_length").get<int64_t>());
}

TEST(Bleu, EqualsSacrebleu) {
  const auto data = sacrebleu_data();
  ASSERT_GT(data.at("cases").size(), 40u);
  for (const auto& c : data.at("cases")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const auto hypotheses = c.at("hypotheses").get<Texts>();
    const auto references = c.at("references").get<Texts>();
    const auto& bleu = c.at("bleu");
    expect_equal(corpus_bleu(hypotheses, references, BleuTokenizer::v13a), bleu.at("13a"));
    expect_equal(corpus_bleu(hypotheses, references, BleuTokenizer::v13a, true), bleu.at("13a lowercase"));
    expect_equal(corpus_bleu(hypotheses, references, BleuTokenizer::none), bleu.at("none"));
  }
}

TEST(Bleu, OfSeveralReferencesEqualsSacrebleu) {
  const auto data = sacrebleu_data();
  ASSERT_GT(data.at("several_references").size(), 10u);
  for (const auto& c : data.at("several_references")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const auto references = c.at("references").get<std::vector<Texts>>();
    ASSERT_EQ(references.size(), 3u);
    expect_equal(corpus_bleu(c.at("hypotheses").get<Texts>(), references), c.at("bleu"));
  }
}

TEST(Bleu, TokenizesAsSacrebleu) {
  const auto data = sacrebleu_data();
  ASSERT_GT(data.at("tokenize_13a").size(), 40u);
  for (const auto& c : data.at("tokenize_13a")) {
    const auto line = c.at("line").get<std::string>();
    EXPECT_EQ(tokenize_13a(line), c.at("tokens").get<std::string>()) << line;
  }
}

TEST(Bleu, KnownValueByHand) {
  // 5 of 6 words, 3 of 5 pairs, 1 of 4 triples, no group of four: smoothed to 1/2 of 3.
  const BleuScore bleu =
      corpus_bleu(Texts{"the cat sat on the mat"}, Texts{"the cat is on the mat"}, BleuTokenizer::none);
  EXPECT_NEAR(bleu.precisions[0], 100 * 5 / 6., 1e-12);
  EXPECT_NEAR(bleu.precisions[1], 100 * 3 / 5., 1e-12);
  EXPECT_NEAR(bleu.precisions[2], 100 * 1 / 4., 1e-12);
  EXPECT_NEAR(bleu.precisions[3], 100 * 0.5 / 3., 1e-12);
  EXPECT_EQ(bleu.brevity_penalty, 1);
}

TEST(Bleu, RefusesWhatDoesNotPair) {
  const Texts two = {"a", "b"}, one = {"a"}, none;
  try {
    corpus_bleu(two, one, BleuTokenizer::v13a);
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "BLEU: 2 hypotheses but 1 references");
  }
  EXPECT_THROW(corpus_bleu(none, none, BleuTokenizer::v13a), DataError);
  EXPECT_THROW(corpus_bleu(two, std::vector<Texts>{}), DataError);
  EXPECT_THROW(corpus_bleu(two, std::vector<Texts>{two, one}), DataError);
}

TEST(Bleu, AcceptsEveryByte) {
  std::string bytes;
  for (int first = 0; first < 256; ++first)
    for (int second = 0; second < 256; second += 7)
      bytes += {static_cast<char>(first), static_cast<char>(second), ' ', 'x'};
  const BleuScore bleu = corpus_bleu(Texts{bytes}, Texts{bytes}, BleuTokenizer::v13a, true);
  EXPECT_NEAR(bleu.score, 100, 1e-9);
}

}  // namespace
}  // namespace attune
