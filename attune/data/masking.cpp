#include "attune/data/masking.h"

#include <algorithm>

#include "attune/base/fail.h"
#include "attune/base/random.h"

namespace attune {
namespace {

constexpr uint64_t kKey = 0x6D61736B696E6721;  // another use of the same seed has other random numbers

/// The random numbers that decide about a place.
std::array<uint32_t, 4> words_at(uint64_t place, const MaskingOptions& options) {
  const auto step = static_cast<uint64_t>(options.step);
  return philox({static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32), static_cast<uint32_t>(step),
                 static_cast<uint32_t>(step >> 32)},
                options.seed ^ kKey);
}

double uniform(uint32_t word) {
  return static_cast<double>(word) * 0x1.0p-32;
}

/// Uniform in [0, bound), but for a bias below bound / 2^64.
uint64_t below(uint64_t bound, uint32_t high, uint32_t low) {
  const uint64_t carry = (uint64_t{low} * bound) >> 32;
  return (uint64_t{high} * bound + carry) >> 32;
}

/// Sorted and without doubles.
std::vector<int32_t> sorted_specials(const MaskingOptions& options) {
  std::vector<int32_t> ids = options.special_ids;
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

/// The n-th ordinary id.
int32_t ordinary_id(uint64_t n, const std::vector<int32_t>& specials) {
  auto id = static_cast<int32_t>(n);
  for (const int32_t special : specials) id += static_cast<int32_t>(special <= id);
  return id;
}

void check_input(std::span<const int32_t> tokens, std::span<const int32_t> offsets, int32_t vocab_size) {
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= vocab_size)
      fail<DataError>("mask_tokens: token {} has the id {}, outside the vocabulary of {}", i, tokens[i], vocab_size);
  if (offsets.empty() || offsets.front() != 0 || !std::is_sorted(offsets.begin(), offsets.end()) ||
      static_cast<size_t>(offsets.back()) != tokens.size())
    fail<DataError>("mask_tokens: the {} offsets do not rise from 0 to the {} tokens", offsets.size(), tokens.size());
}

}  // namespace

void MaskingOptions::validate() const {
  if (!(probability > 0 && probability <= 1))
    fail<ConfigError>("the masking probability = {} is not above 0 and at most 1", probability);
  if (mask_id < 0 || mask_id >= vocab_size)
    fail<ConfigError>("mask_id = {} is outside the vocabulary of {}", mask_id, vocab_size);
  for (const int32_t id : special_ids)
    if (id < 0 || id >= vocab_size)
      fail<ConfigError>("the special id {} is outside the vocabulary of {}", id, vocab_size);
  if (sorted_specials(*this).size() == static_cast<size_t>(vocab_size))
    fail<ConfigError>("all {} ids of the vocabulary are special, so that none can be masked", vocab_size);
}

MaskingOptions MaskingOptions::for_tokenizer(const Tokenizer& tokenizer) {
  const SpecialIds& s = tokenizer.special_ids();
  if (s.mask < 0 && (s.pad < 0 || s.pad == s.unk || s.pad == s.bos || s.pad == s.eos))
    fail<ConfigError>("the tokenizer has no <pad> of its own, which masking needs in place of [MASK]");
  MaskingOptions options{.mask_id = s.mask < 0 ? s.pad : s.mask, .vocab_size = tokenizer.vocab_size()};
  for (const int32_t id : {s.pad, s.unk, s.bos, s.eos, s.mask, s.cls, s.sep})
    if (id >= 0) options.special_ids.push_back(id);
  return options;
}

MaskedBatch mask_tokens(std::span<const int32_t> tokens, std::span<const int32_t> offsets,
                        const MaskingOptions& options) {
  options.validate();
  check_input(tokens, offsets, options.vocab_size);
  const std::vector<int32_t> specials = sorted_specials(options);
  const auto ordinary = static_cast<uint64_t>(options.vocab_size) - specials.size();
  const auto is_special = [&](int32_t id) { return std::binary_search(specials.begin(), specials.end(), id); };

  MaskedBatch batch;
  batch.tokens.assign(tokens.begin(), tokens.end());
  batch.offsets.assign(offsets.begin(), offsets.end());
  const auto choose = [&](size_t place, const std::array<uint32_t, 4>& words) {
    int32_t& token = batch.tokens[place];
    batch.rows.push_back(static_cast<int32_t>(place));
    batch.labels.push_back(token);
    const double kind = uniform(words[1]);
    if (kind < 0.8)
      token = options.mask_id;
    else if (kind < 0.9)
      token = ordinary_id(below(ordinary, words[2], words[3]), specials);
  };
  std::vector<size_t> candidates;
  for (size_t place = 0; place < tokens.size(); ++place) {
    if (is_special(tokens[place])) continue;
    const auto words = words_at(place, options);
    if (uniform(words[0]) < options.probability)
      choose(place, words);
    else if (batch.rows.empty())
      candidates.push_back(place);
  }
  if (batch.rows.empty() && !candidates.empty()) {
    const auto words = words_at(tokens.size(), options);  // of the place after the last one
    choose(candidates[below(candidates.size(), words[2], words[3])], words_at(tokens.size() + 1, options));
  }
  return batch;
}

}  // namespace attune
