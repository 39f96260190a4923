#include "attune/train/tasks/translation_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/text/text_file.h"
#include "tests/support/small_model.h"
#include "tests/train/subword_model.h"
#include "tests/train/training_run.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TranslationValidationTest : public ::testing::Test {
 protected:
  TranslationValidationTest() {
    config_.model = model_->config();
    config_.generation = subword_generation();
    write_file(folder_ / "src", joined(sources_));
    write_file(folder_ / "tgt", joined(outputs_));
  }
  ValidationReport measured() const {
    const auto tokenizer = subword_tokenizer();
    return TranslationValidation(config_, {tokenizer, tokenizer}).measure(model_);
  }
  void expect_perfect(const ValidationReport& report) const {
    EXPECT_NEAR(report.bleu.value(), 100, 1e-9);
    ASSERT_FALSE(report.samples.empty());
    for (const ValidationReport::Sample& sample : report.samples) {
      EXPECT_EQ(sample.reference, sample.translation);
      EXPECT_THAT(sample.reference, Not(HasSubstr("@@")));
    }
  }

  OneThread one_thread_;
  TemporaryFolder folder_{memory_folder()};
  const std::shared_ptr<Transformer> model_ = subword_model();
  const std::vector<std::string> sources_ = {"a b@@ c d", "e f", "g@@ h a", "b c d e@@ f"};
  const std::vector<std::string> outputs_ = outputs_in_subwords(sources_);
  RunConfig config_;
};

TEST_F(TranslationValidationTest, PerfectTranslationsIntoSubwordsScore100) {
  config_.data.valid_source = {(folder_ / "src").string()};
  config_.data.valid_target = {(folder_ / "tgt").string()};
  const ValidationReport report = measured();
  expect_perfect(report);
  EXPECT_EQ(report.samples[0].source, sources_[0]);
  size_t tokens = 0;
  for (const std::string& output : outputs_) {
    EXPECT_THAT(output, HasSubstr("@@ "));
    tokens += count_words(output) + 1;
  }
  EXPECT_EQ(report.loss.tokens, static_cast<int64_t>(tokens)) << "the loss is of the subwords, and of eos";
}

TEST_F(TranslationValidationTest, SoDoThoseOfPairsThatAreHeldOut) {
  config_.data.train_source = {(folder_ / "src").string()};
  config_.data.train_target = {(folder_ / "tgt").string()};
  config_.data.valid_fraction = 0.5;
  expect_perfect(measured());
}

}  // namespace
}  // namespace attune
