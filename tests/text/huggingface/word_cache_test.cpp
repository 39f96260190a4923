#include "attune/text/huggingface/word_cache.h"

#include <gtest/gtest.h>

#include <string>

namespace attune::huggingface {
namespace {

using Ids = std::vector<int32_t>;

Ids ids_of(int32_t i) {
  return Ids(1 + static_cast<size_t>(i) % WordCache::kMostTokens, i);
}

void insert(int32_t i, WordCache& cache) {
  const std::string word = "word" + std::to_string(i);
  cache.insert(word, hash_of(word), ids_of(i));
}

// Returns whether the word is there.
bool find(int32_t i, const WordCache& cache) {
  const std::string word = "word" + std::to_string(i);
  Ids ids;
  const bool found = cache.find(word, hash_of(word), ids);
  EXPECT_EQ(ids, found ? ids_of(i) : Ids());
  return found;
}

TEST(WordCache, AWordIsForgottenOrHasItsTokensWhileTheCacheGrows) {
  WordCache cache;
  EXPECT_FALSE(find(0, cache));
  for (int32_t i = 0; i < 100'000; ++i) {
    insert(i, cache);
    EXPECT_TRUE(find(i, cache));
    find(i / 2, cache);
  }
}

TEST(WordCache, KeepsMostWordsOfALongText) {
  constexpr int32_t kWords = 10'000;
  WordCache cache;
  for (int32_t round = 0; round < 4; ++round)
    for (int32_t i = 0; i < kWords; ++i)
      if (!find(i, cache)) insert(i, cache);
  int32_t kept = 0;
  for (int32_t i = 0; i < kWords; ++i) kept += find(i, cache);
  EXPECT_GT(kept, kWords * 3 / 4);
}

TEST(WordCache, LongWordsAndManyTokensAreNotKept) {
  WordCache cache;
  const std::string word(WordCache::kLongestWord + 1, 'a');
  Ids ids(WordCache::kMostTokens + 1);
  cache.insert(word, 0, Ids{1});
  EXPECT_FALSE(cache.find(word, 0, ids));
  cache.insert("a", 0, ids);
  EXPECT_FALSE(cache.find("a", 0, ids));
}

}  // namespace
}  // namespace attune::huggingface
