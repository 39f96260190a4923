#pragma once
// Hides whole words from a model in training: the tokens that it reads, never those that it is to predict.

#include <cstdint>
#include <vector>

#include "attune/base/random.h"
#include "attune/text/tokenizer.h"

namespace attune {

/// The draws of one forward pass: a pure function of the seed and its number. Source: Gal and Ghahramani 2016, "A
/// Theoretically Grounded Application of Dropout in Recurrent Neural Networks", section 4.2; for source and target of
/// translation Sennrich and Zhang 2019, "Revisiting Low-Resource Neural Machine Translation", section 4.
class WordDropout {
 public:
  /// `share`, in [0, 1), is the probability that a token is hidden; 0 draws nothing.
  WordDropout(double share, uint64_t seed, uint64_t forward);

  /// Each token becomes the unknown one with the probability `share`; special tokens stay. Each call has draws of its
  /// own. Throws ConfigError for a tokenizer without an unknown token.
  void hide(std::vector<int32_t>& tokens, const Tokenizer& tokenizer);

 private:
  double share_;
  Random random_;
};

}  // namespace attune
