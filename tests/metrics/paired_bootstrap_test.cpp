#include "attune/metrics/paired_bootstrap.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attune/base/error.h"

namespace attune {
namespace {

using Texts = std::vector<std::string>;

// Sentences of which a system gets every `wrong`-th one wrong.
Texts system(const Texts& references, size_t wrong) {
  Texts outputs = references;
  for (size_t i = 0; i < outputs.size(); i += wrong) outputs[i] = "quite another sentence than that";
  return outputs;
}

Texts references() {
  Texts texts;
  for (int i = 0; i < 120; ++i) texts.push_back("sentence " + std::to_string(i) + " has some more words");
  return texts;
}

TEST(PairedBootstrap, AClearDifferenceIsSignificant) {
  const Texts truth = references();
  const auto bad = bleu_counts(system(truth, 2), truth), good = bleu_counts(system(truth, 10), truth);
  const PairedBootstrap result = paired_bootstrap(bad, good, 300);
  EXPECT_NEAR(result.difference,
              corpus_bleu(system(truth, 10), truth).score - corpus_bleu(system(truth, 2), truth).score, 1e-9);
  EXPECT_EQ(result.p_value, 0);
  EXPECT_GT(result.low, 0);
  EXPECT_LT(result.low, result.difference);
  EXPECT_GT(result.high, result.difference);
  const PairedBootstrap turned = paired_bootstrap(good, bad, 300);
  EXPECT_NEAR(turned.difference, -result.difference, 1e-9);
  EXPECT_NEAR(turned.low, -result.high, 1e-9);
  EXPECT_EQ(turned.p_value, 0);
}

TEST(PairedBootstrap, ASmallDifferenceMayBeChance) {
  const Texts truth = references();
  Texts other = system(truth, 6);
  other[1] = "one more";  // and one sentence that the other gets wrong is right
  other[0] = truth[0];
  const PairedBootstrap result = paired_bootstrap(bleu_counts(system(truth, 6), truth), bleu_counts(other, truth), 300);
  EXPECT_GT(result.p_value, 0.05);
  EXPECT_LE(result.low, 0);
  EXPECT_GE(result.high, 0);
}

TEST(PairedBootstrap, EqualOutputsDoNotDiffer) {
  const Texts truth = references();
  const auto counts = bleu_counts(system(truth, 3), truth);
  const PairedBootstrap result = paired_bootstrap(counts, counts, 50);
  EXPECT_EQ(result.difference, 0);
  EXPECT_EQ(result.p_value, 1);
  EXPECT_THROW(paired_bootstrap(counts, std::span(counts).first(3)), DataError);
  EXPECT_THROW(paired_bootstrap({}, {}), DataError);
  EXPECT_THROW(paired_bootstrap(counts, counts, 0), DataError);
}

TEST(PairedBootstrap, APValueIsWrittenNoSmallerThanTheSamplesShow) {
  EXPECT_EQ(p_value_text(0, 1000), "p < 0.001");
  EXPECT_EQ(p_value_text(0.001, 1000), "p = 0.001");
  EXPECT_EQ(p_value_text(0.0002, 10000), "p < 0.001");
  EXPECT_EQ(p_value_text(0, 20), "p < 0.05");
  EXPECT_EQ(p_value_text(1, 20), "p = 1.000");
}

}  // namespace
}  // namespace attune
