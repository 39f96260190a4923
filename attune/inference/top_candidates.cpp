#include "attune/inference/top_candidates.h"

#include "attune/base/fail.h"
#include "attune/base/profile.h"

namespace attune {
namespace {

void check_rules(std::span<const CandidateRules> rules, int64_t rows, int64_t vocab) {
  if (!rules.empty() && static_cast<int64_t>(rules.size()) != rows)
    fail<ShapeError>("top_candidates: {} rules for {} rows", rules.size(), rows);
  for (const CandidateRules& r : rules) {
    for (const int32_t token : r.wanted)
      if (token < 0 || token >= vocab) fail<ShapeError>("top_candidates: wants token {} of {}", token, vocab);
  }
}

}  // namespace

void top_candidates(const Tensor& logits, int64_t count, const std::vector<int32_t>& excluded,
                    std::span<const CandidateRules> rules, CandidateLists& lists) {
  const ProfileScope scope("top_candidates");
  if (logits.rank() != 2 || count < 1)
    fail<ShapeError>("top_candidates: needs logits [rows, vocab] and a count from 1, found {} and {}",
                     logits.shape().text(), count);
  check_rules(rules, logits.size(0), logits.size(1));
  size_t most_wanted = 0;
  for (const CandidateRules& rule : rules) most_wanted = std::max(most_wanted, rule.wanted.size());
  lists.reset(static_cast<size_t>(logits.size(0)), static_cast<size_t>(std::min(count, logits.size(1))) + most_wanted);
  const int64_t failed = dispatch(logits.device(), [&](auto device) {
    return top_candidates(device, {.logits = logits, .count = count, .excluded = excluded, .rules = rules}, lists);
  });
  if (failed >= 0)
    fail<NumericError>("top_candidates: the logits of row {} of {} are not finite", failed, logits.shape().text());
}

}  // namespace attune
