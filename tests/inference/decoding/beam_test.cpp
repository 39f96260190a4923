// The search of one sentence, with candidates that the tests choose.

#include "attune/inference/decoding/beam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace attune {
namespace {

constexpr int32_t kFirstEnd = 3, kSecondEnd = 4, kWord = 7, kOtherWord = 8;

// A beam for a language model whose prompt is bos.
class ScriptedBeam {
 public:
  explicit ScriptedBeam(const GenerationConfig& generation, int64_t n_best = 1, int64_t limit = 10)
      : options_{.generation = generation, .n_best = n_best}, beam_(options_, {}, {options_.special.bos}, 0, limit) {}

  /// Makes a step with the candidates of each row.
  void advance(std::initializer_list<std::vector<Candidate>> rows) {
    CandidateLists lists;
    lists.reset(rows.size(), 8);
    size_t row = 0;
    for (const std::vector<Candidate>& candidates : rows) {
      std::copy(candidates.begin(), candidates.end(), lists.room(row).begin());
      lists.set_count(row++, candidates.size());
    }
    beam_.advance({.candidates = lists});
  }
  const Beam& beam() const { return beam_; }

 private:
  BeamSearchOptions options_;
  Beam beam_;
};

TEST(Beam, OfOneEndsAtTheFirstEosByEveryRule) {
  for (const auto& [rule, name] : EnumNames<EarlyStopping>::values) {
    ScriptedBeam search({.beam_size = 1, .length_penalty = 3, .early_stopping = rule, .patience = 3});
    search.advance({{{kFirstEnd, -0.5}, {kWord, -1}}});  // with other words a longer one would score above it
    EXPECT_TRUE(search.beam().done()) << name;
    ASSERT_EQ(search.beam().hypotheses().size(), 1u) << name;
    EXPECT_TRUE(search.beam().hypotheses().front().tokens.empty()) << name;
  }
}

TEST(Beam, AnOutputThatTwoTokensEndCountsOnce) {
  ScriptedBeam search({.beam_size = 2, .eos_tokens = {kFirstEnd, kSecondEnd}}, 2);
  search.advance({{{kSecondEnd, -0.5}, {kFirstEnd, -1}, {kWord, -2}, {kOtherWord, -3}}});
  EXPECT_FALSE(search.beam().done()) << "one of two outputs is finished";
  ASSERT_EQ(search.beam().hypotheses().size(), 1u);
  EXPECT_EQ(search.beam().hypotheses().front().log_probability, -0.5);
  search.advance({{{kFirstEnd, -0.5}, {kSecondEnd, -0.75}, {kWord, -3}}, {{kWord, -3}}});
  EXPECT_TRUE(search.beam().done());
  const std::vector<Hypothesis> found = search.beam().hypotheses();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].tokens.empty());
  EXPECT_EQ(found[1].tokens, std::vector<int32_t>{kWord});
  EXPECT_EQ(found[1].log_probability, -2.5);
}

// Whatever else ranks it: it is no output that only lacks room.
TEST(Beam, ADeadEndComesAfterWhatIsFinished) {
  ScriptedBeam search({.beam_size = 2, .rank_unfinished = true}, 2);
  search.advance({{{kFirstEnd, -5}, {kWord, -0.5}}});
  ASSERT_FALSE(search.beam().done());
  search.advance({std::vector<Candidate>{}});
  EXPECT_TRUE(search.beam().done());
  const std::vector<Hypothesis> found = search.beam().hypotheses();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].finished);
  EXPECT_FALSE(found[1].finished);
  EXPECT_EQ(found[1].tokens, std::vector<int32_t>{kWord});
  EXPECT_EQ(found[1].log_probability, -0.5);
  EXPECT_EQ(found[1].score, -0.5 / GenerationConfig{}.length_divisor(1));
}

}  // namespace
}  // namespace attune
