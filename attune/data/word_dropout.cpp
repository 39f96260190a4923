#include "attune/data/word_dropout.h"

#include "attune/base/fail.h"

namespace attune {
namespace {

constexpr uint64_t kWordDropoutStream = uint64_t{0x776f7264} << 32;  // "word": dropout and batches have other streams

}  // namespace

WordDropout::WordDropout(double share, uint64_t seed, uint64_t forward)
    : share_(share), random_(seed, kWordDropoutStream + forward) {}

void WordDropout::hide(std::vector<int32_t>& tokens, const Tokenizer& tokenizer) {
  if (share_ == 0) return;
  if (tokenizer.unk_id() < 0)
    fail<ConfigError>("train.word_dropout = {}: the tokenizer ({}) has no unknown token", share_, tokenizer.kind());
  for (int32_t& token : tokens) {
    const bool drop = random_.uniform() < share_;  // drawn for every place, so that none depends on the others
    if (drop && !tokenizer.is_special_token(token)) token = tokenizer.unk_id();
  }
}

}  // namespace attune
