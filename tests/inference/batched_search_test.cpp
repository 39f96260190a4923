#include "attune/inference/batched_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/inference/random_model.h"

namespace attune {
namespace {

// Thousands of sentences, eight at a time: the cache is no larger than what eight can have, and what is found is what
// each one gives alone.
TEST(BatchedSearch, MemoryIsThatOfWhatIsThereAtOnce) {
  constexpr size_t kSentences = 10000, kAtOnce = 8;
  constexpr int64_t kBeam = 2, kLongest = 5, kSourceTokens = 7;  // with eos
  TransformerConfig config = small_config(MultiHeadLatent{.latent_dim = 4}, NormPlacement::pre);
  config.d_model = 16;
  config.heads = 2;
  config.d_ff = 16;
  config.layers = 1;
  const auto model = random_model(config);
  token_bias(*model, 3) += 2;
  const auto source = random_sentences(kSentences, kSourceTokens - 1, 40);
  const BeamSearchOptions options{.generation = {.beam_size = kBeam, .max_length = kLongest}};
  BatchedSearch search(*model, options);
  size_t next = 0, done = 0;
  int64_t most_bytes = 0;
  std::vector<std::vector<Hypothesis>> found(kSentences);
  while (done < kSentences) {
    const size_t room = kAtOnce - static_cast<size_t>(search.sentences());
    if (2 * room >= kAtOnce && next < kSentences) {
      std::vector<size_t> ids;
      std::vector<std::vector<int32_t>> newcomers;
      for (; ids.size() < room && next < kSentences; ++next) {
        ids.push_back(next);
        newcomers.push_back(source[next]);
      }
      search.add(ids, pack_sentences(newcomers));
    }
    for (FoundSentence& f : search.step()) {
      found[f.id] = std::move(f.hypotheses);
      ++done;
    }
    most_bytes = std::max(most_bytes, search.cache_bytes());
  }
  const int64_t latent = 4 * 4;  // bytes of a token in one layer's cache
  EXPECT_LE(most_bytes, latent * static_cast<int64_t>(kAtOnce) * (kSourceTokens + kBeam * (kLongest + 1)));
  for (size_t i = 0; i < kSentences; i += 97) {
    const auto alone = beam_search(*model, pack_sentences({source[i]}), options).at(0);
    EXPECT_EQ(found[i].at(0).tokens, alone.at(0).tokens) << i;
    EXPECT_EQ(found[i][0].score, alone[0].score) << i;
  }
}

}  // namespace
}  // namespace attune
