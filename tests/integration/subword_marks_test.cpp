// Translators whose text is cut into subwords with marks are scored against references without them.

#include <gtest/gtest.h>

#include "attune/base/json_fields.h"
#include "attune/io/model_folder.h"
#include "attune/text/text_file.h"
#include "tests/integration/cli_fixture.h"
#include "tests/train/subword_model.h"

namespace attune {
namespace {

class SubwordMarksTest : public CliFixture {
 protected:
  SubwordMarksTest() {
    const auto tokenizer = subword_tokenizer();
    save_model_folder(folder_ / "run" / "model", *subword_model(), *tokenizer, *tokenizer, subword_generation());
    make_run("run");
  }
  /// What compare reads of a run, beside its model.
  void make_run(const std::string& name) const {
    write_file(folder_ / name / "config.toml", "[train]\nseed = 1\n");
    write_file(folder_ / name / "metrics.jsonl", "{\"step\":1,\"loss\":1}\n");
  }

  const std::vector<std::string> sources_ = {"a b@@ c d", "e f", "g@@ h a"};
  const std::vector<std::string> outputs_ = outputs_in_subwords(sources_);
  const std::string source_ = file("source", joined(sources_)), reference_ = file("reference", joined(outputs_));
};

TEST_F(SubwordMarksTest, EvaluateScoresJoinedReferencesAndMeasuresTheirTokens) {
  const auto evaluated = [&](const std::vector<std::string>& references) {
    std::vector<std::string> words = {"evaluate", folder_ / "run" / "model", "--source", source_, "--json"};
    for (const std::string& reference : references) words.insert(words.end(), {"--reference", reference});
    return Json::parse(output_of(words));
  };
  const Json cut = evaluated({reference_});
  EXPECT_NEAR(cut.at("bleu").get<double>(), 100, 1e-9);
  EXPECT_NEAR(cut.at("chrf").get<double>(), 100, 1e-9);
  EXPECT_EQ(cut.at("ter"), 0);
  size_t tokens = 0;
  for (const std::string& output : outputs_) tokens += count_words(output) + 1;
  EXPECT_EQ(cut.at("target_tokens"), tokens) << "and eos of each";

  std::vector<std::string> translations;
  for (const std::string& output : outputs_) translations.push_back(joined_text(*subword_tokenizer(), output));
  const std::string nothing = file("nothing", joined({"x", "x", "x"})),
                    joined_already = file("joined", joined(translations));
  EXPECT_EQ(evaluated({nothing, reference_}).at("ter"), 0) << "each of several is joined";
  EXPECT_EQ(evaluated({joined_already}).at("ter"), 0);
}

TEST_F(SubwordMarksTest, CompareScoresAllRunsAgainstJoinedReferences) {
  write_small_model(folder_ / "other" / "model");
  make_run("other");
  for (const auto& [first, second] : {std::pair{"run", "other"}, std::pair{"other", "run"}}) {
    const Json json = Json::parse(output_of({"compare", folder_ / first, folder_ / second, "--source", source_,
                                             "--reference", reference_, "--samples", "10", "--json"}));
    for (const Json& run : json.at("runs")) {
      if (run.at("run") == (folder_ / "run").string()) {
        EXPECT_NEAR(run.at("test_bleu").get<double>(), 100, 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace attune
