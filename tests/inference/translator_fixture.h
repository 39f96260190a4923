#pragma once
// What the tests of Translator translate with.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "attune/inference/translator.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/inference/random_model.h"

namespace attune {

inline std::shared_ptr<const Tokenizer> numbered_words(const std::string& prefix, int count) {
  std::vector<std::string> words;
  for (int i = 0; i < count; ++i) words.push_back(prefix + std::to_string(i));
  return std::make_shared<WhitespaceTokenizer>(words);
}

/// A small translation model whose words are a0 to a35 and b0 to b25.
class TranslatorFixture : public ::testing::Test {
 protected:
  TranslatorFixture() : model_(random_model(config())) { token_bias(*model_, 3) += 2; }

  static TransformerConfig config() {
    TransformerConfig c = small_config(MultiHeadLatent{}, NormPlacement::pre);
    c.target_vocab = 30;
    return c;
  }
  static std::vector<std::string> sentences(int count) {
    Random random(8);
    std::vector<std::string> lines(static_cast<size_t>(count));
    for (std::string& line : lines) {
      const uint64_t length = random.below(12);  // 0: an empty line
      for (uint64_t i = 0; i < length; ++i) line += (i > 0 ? " a" : "a") + std::to_string(random.below(36));
    }
    return lines;
  }
  std::vector<Translation> translate(const std::vector<std::string>& lines,
                                     const TranslateOptions& options = {}) const {
    return translator_.translate(lines, options);
  }

  std::shared_ptr<Transformer> model_;
  std::shared_ptr<const Tokenizer> source_ = numbered_words("a", 36), target_ = numbered_words("b", 26);
  GenerationConfig generation_ = {.beam_size = 3, .max_length = 10};
  Translator translator_{model_, source_, target_, generation_};
};

}  // namespace attune
