#pragma once
// A translator with random weights whose text is cut into subwords with marks: "a@@ b c".

#include <memory>
#include <string>
#include <vector>

#include "attune/inference/translator.h"
#include "attune/models/build.h"
#include "attune/text/whitespace_tokenizer.h"

namespace attune {

/// Eight words, and the same as beginnings of words.
inline std::shared_ptr<const WhitespaceTokenizer> subword_tokenizer() {
  std::vector<std::string> words;
  for (const char letter : std::string("abcdefgh")) {
    words.emplace_back(1, letter);
    words.push_back(std::string(1, letter) + "@@");
  }
  return std::make_shared<WhitespaceTokenizer>(words, "@@");
}

/// Outputs have twelve tokens or more, none of them twice: at least four that end a word, and four that do not.
inline GenerationConfig subword_generation() {
  return {.beam_size = 1, .max_length = 13, .min_length = 12, .no_repeat_ngram_size = 1, .suppressed_tokens = {1}};
}

inline std::shared_ptr<Transformer> subword_model() {
  const int64_t vocab = subword_tokenizer()->vocab_size();
  return build_transformer(
      {.source_vocab = vocab, .target_vocab = vocab, .d_model = 32, .heads = 4, .layers = 1, .d_ff = 64}, 7);
}

/// What the model writes for each source, before it is joined.
inline std::vector<std::string> outputs_in_subwords(const std::vector<std::string>& sources) {
  const auto tokenizer = subword_tokenizer();
  const Translator translator(subword_model(), tokenizer, tokenizer, subword_generation());
  std::vector<std::string> outputs;
  for (const Translation& translation : translator.translate(sources)) {
    std::string& output = outputs.emplace_back();
    for (const int32_t id : translation.n_best.front().tokens)
      output += (output.empty() ? "" : " ") + tokenizer->piece(id);
  }
  return outputs;
}

}  // namespace attune
