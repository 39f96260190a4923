#include "attune/metrics/chrf.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "attune/base/error.h"
#include "attune/base/file.h"
#include "tests/support/paths.h"

namespace attune {
namespace {

using Texts = std::vector<std::string>;

TEST(Chrf, EqualsSacrebleu) {
  const auto data = nlohmann::json::parse(read_file(source_dir() / "tests/metrics/data/sacrebleu.json"));
  ASSERT_GT(data.at("cases").size(), 40u);
  for (const auto& c : data.at("cases")) {
    const double chrf = corpus_chrf(c.at("hypotheses").get<Texts>(), c.at("references").get<Texts>());
    EXPECT_NEAR(chrf, c.at("chrf").get<double>(), 1e-9) << c.at("name");
  }
}

TEST(Chrf, OfSeveralReferencesEqualsSacrebleu) {
  const auto data = nlohmann::json::parse(read_file(source_dir() / "tests/metrics/data/sacrebleu.json"));
  for (const auto& c : data.at("several_references")) {
    const auto references = c.at("references").get<std::vector<Texts>>();
    const double chrf = corpus_chrf(c.at("hypotheses").get<Texts>(), references);
    EXPECT_NEAR(chrf, c.at("chrf").get<double>(), 1e-9) << c.at("name");
  }
}

TEST(Chrf, KnownValueByHand) {
  // 1-grams: 2 of 3 match 2 of 2; 2-grams: 1 of 2 match 1 of 1; the reference has no longer ones.
  const double precision = (2 / 3. + 1 / 2.) / 2, recall = 1;
  EXPECT_NEAR(corpus_chrf(Texts{"ab c"}, Texts{"a b"}), 100 * 5 * precision * recall / (4 * precision + recall), 1e-12);
}

TEST(Chrf, CountsCodePoints) {
  EXPECT_NEAR(corpus_chrf(Texts{"ü"}, Texts{"ö"}), 0, 1e-12);  // their first bytes agree
  EXPECT_NEAR(corpus_chrf(Texts{"\xFF\xFE"}, Texts{"\xFF\xFE"}), 100, 1e-12);
  EXPECT_LT(corpus_chrf(Texts{"\xFF\xFE"}, Texts{"\xFF\xFD"}), 60);
}

TEST(Chrf, RefusesWhatDoesNotPair) {
  const Texts two = {"a", "b"}, one = {"a"}, none;
  EXPECT_THROW(corpus_chrf(one, two), DataError);
  EXPECT_THROW(corpus_chrf(none, none), DataError);
}

}  // namespace
}  // namespace attune
