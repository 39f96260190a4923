#include "attune/inference/decoding/shortlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "attune/inference/decoding/beam_search.h"
#include "attune/io/safetensors.h"
#include "tests/inference/random_model.h"
#include "tests/support/errors.h"
#include "tests/support/memory.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Shortlist, IsTheUnionAndComesBack) {
  const Shortlist shortlist({{}, {9, 4}, {4, 11}}, {5, 4}, 12);
  EXPECT_THAT(shortlist.targets_of(std::vector<int32_t>{1, 2, 1}), ElementsAre(4, 5, 9, 11));
  EXPECT_THAT(shortlist.targets_of(std::vector<int32_t>{0, 7, -1}), ElementsAre(4, 5));
  TemporaryFolder folder;
  shortlist.save(folder / "list");
  const Shortlist read = Shortlist::load(folder / "list");
  EXPECT_EQ(read.source_vocab(), 3);
  EXPECT_EQ(read.target_vocab(), 12);
  for (const int32_t s : {0, 1, 2}) EXPECT_EQ(read.targets_of(std::vector{s}), shortlist.targets_of(std::vector{s}));
}

TEST(Shortlist, ATokenThatIsRepeatedTakesNoMoreMemory) {
  std::vector<int32_t> all(1 << 16);
  std::iota(all.begin(), all.end(), 0);
  const Shortlist shortlist({all}, {}, 1 << 16);
  const int64_t before = peak_resident_bytes();
  EXPECT_EQ(shortlist.targets_of(std::vector<int32_t>(4096)), all);  // 1 GiB, if each brought them
  EXPECT_LT(peak_resident_bytes() - before, (int64_t{64} << 20) + kKeptOfFreed);
}

TEST(Shortlist, HostileFilesAreRefused) {
  TemporaryFolder folder;
  const std::filesystem::path path = folder / "list";
  const auto refusal = [&](const std::vector<int32_t>& offsets, const std::vector<int32_t>& targets,
                           const std::string& vocab = "12", const std::string& format = "attune-shortlist") {
    const auto tensor = [](const std::vector<int32_t>& v) { return Tensor::from({static_cast<int64_t>(v.size())}, v); };
    write_safetensors(
        path,
        std::vector<NamedTensor>{{"offsets", tensor(offsets)}, {"targets", tensor(targets)}, {"frequent", tensor({1})}},
        {{"format", format}, {"target_vocab", vocab}});
    return message_of<FileError>([&] { Shortlist::load(path); });
  };
  EXPECT_THAT(refusal({0, 2, 1}, {4}), HasSubstr("the offsets do not rise from 0 to the 1 targets"));
  EXPECT_THAT(refusal({0, 2}, {4}), HasSubstr("offsets"));
  EXPECT_THAT(refusal({-1, 1}, {4}), HasSubstr("offsets"));
  EXPECT_THAT(refusal({}, {}), HasSubstr("offsets"));
  EXPECT_THAT(refusal({0, 1}, {12}), HasSubstr("target 12 is outside the vocabulary of 12"));
  EXPECT_THAT(refusal({0, 1}, {-3}), HasSubstr("target -3"));
  EXPECT_THAT(refusal({0, 1}, {4}, "many"), HasSubstr("target_vocab = \"many\""));
  EXPECT_THAT(refusal({0, 1}, {4}, "12", "poem"), HasSubstr("is no shortlist"));
  EXPECT_THAT(message_of<DataError>([&] { Shortlist({{3}}, {}, 3); }), HasSubstr("target 3"));
  Shortlist({{1, 2}, {3}}, {4}, 5).save(path);
  const std::string bytes = read_file(path);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    std::string damaged = bytes;
    damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    write_file(path, damaged);
    try {
      Shortlist::load(path).targets_of(std::vector<int32_t>{0, 1, 2});
    } catch (const Error&) {
    }
  }
}

class ShortlistSearch : public ::testing::Test {
 protected:
  ShortlistSearch() {
    token_bias(*model_, 3) += 2;
    Random random(9);
    for (std::vector<int32_t>& targets : targets_)
      for (int i = 0; i < 4; ++i) targets.push_back(static_cast<int32_t>(random.below(40)));
  }
  static BeamSearchOptions options() { return {.generation = {.beam_size = 3, .max_length = 9}, .n_best = 2}; }

  const std::unique_ptr<Transformer> model_ = random_model(small_config(MultiHeadLatent{}, NormPlacement::pre));
  const std::vector<std::vector<int32_t>> sources_ = random_sentences(20, 6, 40);
  std::vector<std::vector<int32_t>> targets_{40};
};

TEST_F(ShortlistSearch, OfEveryTokenChangesNothing) {
  std::vector<int32_t> all(40);
  std::iota(all.begin(), all.end(), 0);
  const Shortlist everything(std::vector<std::vector<int32_t>>(40), all, 40);
  token_bias(*model_, 0) = token_bias(*model_, 2) = -1000;  // pad and bos, which have a share else
  BeamSearchOptions with = options(), without = options();
  with.shortlist = std::make_shared<const Shortlist>(everything);
  with.generation.no_repeat_ngram_size = without.generation.no_repeat_ngram_size = 2;
  with.generation.repetition_penalty = without.generation.repetition_penalty = 1.3;
  with.banned = without.banned = {{7}, {8, 9}};
  const auto found = beam_search(*model_, pack_sentences(sources_), with);
  const auto expected = beam_search(*model_, pack_sentences(sources_), without);
  for (size_t i = 0; i < sources_.size(); ++i) {
    ASSERT_EQ(found[i].size(), expected[i].size());
    for (size_t h = 0; h < found[i].size(); ++h) {
      EXPECT_EQ(found[i][h].tokens, expected[i][h].tokens) << i;
      EXPECT_NEAR(found[i][h].score, expected[i][h].score, 1e-4);
    }
  }
}

TEST_F(ShortlistSearch, RestrictsEachSentenceWhateverTheBatch) {
  const Shortlist shortlist(targets_, {4, 5}, 40);
  BeamSearchOptions with = options();
  with.shortlist = std::make_shared<const Shortlist>(shortlist);
  std::vector<SentenceConstraints> constraints(sources_.size());
  constraints[3] = {.prefix = {30}, .required = {{31, 32}}};
  const auto found = beam_search(*model_, pack_sentences(sources_), with, constraints);
  for (size_t i = 0; i < sources_.size(); ++i) {
    const auto alone = beam_search(*model_, pack_sentences({sources_[i]}), with, std::span(&constraints[i], 1)).at(0);
    ASSERT_EQ(alone.size(), found[i].size());
    std::vector<int32_t> list = shortlist.targets_of(sources_[i]);
    std::set<int32_t> allowed(list.begin(), list.end());
    if (i == 3) allowed.insert({30, 31, 32});
    for (size_t h = 0; h < alone.size(); ++h) {
      EXPECT_EQ(alone[h].tokens, found[i][h].tokens);
      EXPECT_EQ(alone[h].score, found[i][h].score);
      for (const int32_t token : found[i][h].tokens) EXPECT_TRUE(allowed.contains(token)) << token;
    }
  }
}

TEST_F(ShortlistSearch, HasToBeForTheModel) {
  const Shortlist few(std::vector<std::vector<int32_t>>(39), {}, 40), small(targets_, {}, 41);
  BeamSearchOptions with = options();
  const auto refusal = [&](const Shortlist& shortlist) {
    with.shortlist = std::make_shared<const Shortlist>(shortlist);
    return message_of<ConfigError>([&] { beam_search(*model_, pack_sentences(sources_), with); });
  };
  EXPECT_EQ(refusal(few), "shortlist: is for 39 source tokens, the model has 40");
  EXPECT_EQ(refusal(small), "shortlist: is for 41 target tokens, the model has 40");
}

}  // namespace
}  // namespace attune
