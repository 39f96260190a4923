#include "attune/inference/forced_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/inference/translator.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/inference/random_model.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::shared_ptr<const Tokenizer> words_tokenizer(const std::string& prefix) {
  std::vector<std::string> words;
  for (int i = 0; i < 36; ++i) words.push_back(prefix + std::to_string(i));
  return std::make_shared<WhitespaceTokenizer>(words);
}

Translator random_translator(int64_t alignment_layer, int64_t alignment_head, const PositionKind& positions = {}) {
  TransformerConfig config = small_config(MultiHead{}, NormPlacement::pre);
  config.positions = positions;
  config.alignment_layer = alignment_layer;
  config.alignment_head = alignment_head;
  return {random_model(config), words_tokenizer("a"), words_tokenizer("b"), {.beam_size = 2, .max_length = 9}};
}

TEST(ForcedAlignment, OfATranslationIsThatOfTheSearch) {
  for (const int64_t layer : {0, 1, 2}) {
    const Translator translator = random_translator(layer, 2);
    const ForcedAligner aligner(translator);
    for (const std::string sentence : {"a1 a2 a3", "a7", "a30 a2 a2 a9 a11"}) {
      const ScoredText found = translator.translate(sentence, {.alignments = true}).n_best.front();
      const ForcedAlignment forced = aligner.align(sentence, found.text, "line 1");
      EXPECT_EQ(forced.words, found.alignment) << sentence << " with layer " << layer;
      ASSERT_THAT(forced.heads, SizeIs(2));
      EXPECT_THAT(forced.heads, Each(SizeIs(4)));
      if (layer > 0) {
        EXPECT_EQ(forced.heads[static_cast<size_t>(layer) - 1][1], found.alignment);
      }
    }
  }
}

TEST(ForcedAlignment, SaysWhereItComesFrom) {
  const Translator plain = random_translator(0, 1), guided = random_translator(2, 3);
  EXPECT_EQ(ForcedAligner(plain).origin(), "mean of layer 2");
  EXPECT_EQ(ForcedAligner(guided).origin(), "layer 2, head 3");
}

TEST(ForcedAlignment, AnEmptySideHasNoLinks) {
  const Translator translator = random_translator(1, 1);
  const ForcedAligner aligner(translator);
  for (const auto& [source, target] : {std::pair{"", "b1"}, {"a1", ""}, {"", ""}}) {
    const ForcedAlignment forced = aligner.align(source, target, "line 1");
    EXPECT_THAT(forced.words, IsEmpty());
    ASSERT_THAT(forced.heads, SizeIs(2));
    EXPECT_THAT(forced.heads, Each(Each(IsEmpty())));
  }
  EXPECT_THAT(message_of<DataError>([&] { aligner.align("a1", "\xFF", "gold:3"); }), HasSubstr("gold:3"));
}

TEST(ForcedAlignment, ATranslationThatIsTooLongIsNamed) {
  const Translator translator = random_translator(1, 1), learned = random_translator(1, 1, LearnedPositions{5});
  const std::string five = "b1 b2 b3 b4 b5";
  EXPECT_EQ(message_of<DataError>([&] { ForcedAligner(learned).align("a1", five, "gold:3"); }),
            "gold:3: has 5 tokens, at most 4 are accepted");
  EXPECT_THAT(ForcedAligner(learned).align("a1", "b1 b2 b3 b4", "gold:3").heads, SizeIs(2));
  const ForcedAligner few(translator, TranslateOptions{.max_source_tokens = 3});
  EXPECT_EQ(message_of<DataError>([&] { few.align("a1", five, "gold:3"); }),
            "gold:3: has 5 tokens, at most 3 are accepted");
}

}  // namespace
}  // namespace attune
