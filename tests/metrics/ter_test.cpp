#include "attune/metrics/ter.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "attune/base/error.h"
#include "attune/base/file.h"
#include "attune/metrics/edit_distance.h"
#include "tests/support/paths.h"

namespace attune {
namespace {

using Texts = std::vector<std::string>;

void expect_equal(const TerScore& found, const nlohmann::json& expected) {
  EXPECT_NEAR(found.score, expected.at("score").get<double>(), 1e-9);
  EXPECT_EQ(found.edits, expected.at("edits").get<int64_t>());
  EXPECT_NEAR(found.reference_length, expected.at("reference_length").get<double>(), 1e-9);
}

TEST(Ter, EqualsSacrebleu) {
  const auto data = nlohmann::json::parse(read_file(source_dir() / "tests/metrics/data/sacrebleu.json"));
  size_t pairs = 0;
  for (const auto& c : data.at("cases")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const auto hypotheses = c.at("hypotheses").get<Texts>();
    pairs += hypotheses.size();
    expect_equal(corpus_ter(hypotheses, c.at("references").get<Texts>()), c.at("ter"));
  }
  EXPECT_GT(pairs, 400u);
}

TEST(Ter, OfSeveralReferencesEqualsSacrebleu) {
  const auto data = nlohmann::json::parse(read_file(source_dir() / "tests/metrics/data/sacrebleu.json"));
  for (const auto& c : data.at("several_references")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    expect_equal(corpus_ter(c.at("hypotheses").get<Texts>(), c.at("references").get<std::vector<Texts>>()),
                 c.at("ter"));
  }
}

TEST(Ter, KnownValuesByHand) {
  // "a b" is moved behind "c d e": one edit of five words.
  EXPECT_NEAR(corpus_ter(Texts{"c d e a b"}, Texts{"a b c d e"}).score, 20, 1e-12);
  // One word is replaced and one is missing.
  EXPECT_NEAR(corpus_ter(Texts{"The cat sat"}, Texts{"the dog sat down"}).score, 50, 1e-12);
  EXPECT_EQ(corpus_ter(Texts{""}, Texts{""}).score, 0);
  EXPECT_EQ(corpus_ter(Texts{"a"}, Texts{""}).score, 100);
}

TEST(Ter, LongSentencesTakeMemoryInProportion) {
  std::string ones, many;
  for (int i = 0; i < 20000; ++i) ones += "a ", many += i % 2 == 0 ? "a " : "b ";
  EXPECT_NEAR(corpus_ter(Texts{ones}, Texts{many}).score, 50, 1e-9);
  EXPECT_NEAR(corpus_ter(Texts{"a"}, Texts{ones}).score, 100 * 19999 / 20000., 1e-9);
}

TEST(Ter, RefusesWhatDoesNotPairAndWhatIsTooLong) {
  const Texts two = {"a", "b"}, one = {"a"}, none;
  EXPECT_THROW(corpus_ter(one, two), DataError);
  EXPECT_THROW(corpus_ter(none, none), DataError);
  std::string words;
  for (int i = 0; i <= 100000; ++i) words += "a ";
  EXPECT_THROW(corpus_ter(Texts{words}, one), DataError);
}

TEST(EditDistance, KeepsWhatTextsHaveInCommon) {
  EditDistance distance(U"abcdefg", 4);
  EXPECT_EQ(distance(U"abcd"), 3);
  EXPECT_EQ(distance(U"abce"), 3);  // three rows are those of the text before
  EXPECT_EQ(distance(U"gbcd"), 4);
  EXPECT_EQ(distance(U"abcd"), 3);
  EXPECT_THROW(distance(U"abc"), ShapeError);
}

}  // namespace
}  // namespace attune
