#include "attune/data/token_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "attune/base/error.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TokenAlignment, LinksEachTokenOfAWordWithEachOfTheOther) {
  // Source words 0 0 1, target words 0 1 1 2; word 0 becomes word 1, word 1 words 0 and 2.
  const std::vector<int32_t> source = {0, 0, 1}, target = {0, 1, 1, 2};
  EXPECT_THAT(token_links({{0, 1}, {1, 0}, {1, 2}}, source, target),
              ElementsAre(TokenLink{0, 2}, TokenLink{1, 0}, TokenLink{1, 1}, TokenLink{2, 0}, TokenLink{2, 1},
                          TokenLink{3, 2}));
  EXPECT_THAT(token_links({}, source, target), IsEmpty());
}

TEST(TokenAlignment, LinksOfLongSentencesTakeLinearTime) {
  const std::vector<int32_t> words(1 << 18, 0);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(token_links({{1, 0}}, words, words), IsEmpty());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << "a product of both is a minute";
}

TEST(TokenAlignments, PackTheLinksOfChosenExamples) {
  TokenAlignments all;
  all.add(std::vector<TokenLink>{{0, 1}, {0, 2}, {2, 0}});
  all.add({});
  all.add(std::vector<TokenLink>{{1, 5}});
  EXPECT_EQ(all.examples(), 3);
  // Targets of 2, 3 and 4 tokens.
  const PackedLinks packed = all.pack(std::vector<int32_t>{2, 1, 0}, std::vector<int32_t>{0, 2, 5, 9});
  EXPECT_THAT(packed.offsets, ElementsAre(0, 0, 1, 1, 1, 1, 3, 3, 4, 4));
  EXPECT_THAT(packed.sources, ElementsAre(5, 1, 2, 0));
}

TEST(TokenAlignments, RefuseWhatDoesNotExist) {
  TokenAlignments all;
  all.add(std::vector<TokenLink>{{2, 0}});
  const std::vector<int32_t> offsets = {0, 2};
  EXPECT_THROW(all.pack(std::vector<int32_t>{0}, offsets), DataError);
  EXPECT_THROW(all.pack(std::vector<int32_t>{1}, offsets), DataError);
  EXPECT_THROW(all.of(-1), DataError);
}

}  // namespace
}  // namespace attune
