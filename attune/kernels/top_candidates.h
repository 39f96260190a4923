#pragma once
// The likeliest next tokens.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attune/tensor/tensor.h"

namespace attune {

struct Candidate {
  int32_t token;
  double log_probability;  // at most 0
};

/// The candidates of each row in one array, whose memory is used again in the next step.
class CandidateLists {
 public:
  size_t size() const { return counts_.size(); }  // rows
  std::span<const Candidate> operator[](size_t row) const { return {all_.data() + row * room_, counts_[row]}; }
  std::span<Candidate> operator[](size_t row) { return {all_.data() + row * room_, counts_[row]}; }

  /// Rows of no candidates, with room for `room` in each.
  void reset(size_t rows, size_t room) {
    room_ = room;
    if (all_.size() < rows * room) all_.resize(rows * room);
    counts_.assign(rows, 0);
  }
  /// All the room of a row, and how much of it is used.
  std::span<Candidate> room(size_t row) { return {all_.data() + row * room_, room_}; }
  void set_count(size_t row, size_t count) { counts_[row] = count; }

 private:
  size_t room_ = 0;
  std::vector<Candidate> all_;
  std::vector<size_t> counts_;
};

/// What holds for one row.
struct CandidateRules {
  std::vector<int32_t> excluded = {};  // beside what no row may have
  std::vector<int32_t> wanted = {};    // follow the likeliest where they are not among them, in this order
  bool only_wanted = false;            // there are no others, and none of these is excluded
};

/// What is asked of all rows of logits [rows, vocab].
struct TopCandidates {
  const Tensor& logits;  // float32 or float64
  int64_t count;         // of the likeliest tokens of a row
  std::span<const int32_t> excluded;
  std::span<const CandidateRules> rules;  // none, or one for each row
};

/// Fills `lists`, which has room for `count` and what the rules want in each row, with the likeliest tokens, likeliest
/// first and equal ones by lower id. Those that are excluded are left out but keep their share of the probability, and
/// so are those of probability 0, so that there may be fewer. A row's answer depends on that row alone. Returns the
/// first row that has no distribution, where a logit is NaN or infinite or all are minus infinity, or -1; what the list
/// of such a row holds means nothing.
int64_t top_candidates(Cpu, const TopCandidates& arguments, CandidateLists& lists);
int64_t top_candidates(Plain, const TopCandidates& arguments, CandidateLists& lists);

/// The tokens that one row may not have, sorted: `excluded` and what its rule adds.
inline std::vector<int32_t> excluded_of_row(const TopCandidates& arguments, size_t row) {
  std::vector<int32_t> excluded(arguments.excluded.begin(), arguments.excluded.end());
  if (!arguments.rules.empty()) {
    const std::vector<int32_t>& more = arguments.rules[row].excluded;
    excluded.insert(excluded.end(), more.begin(), more.end());
  }
  std::sort(excluded.begin(), excluded.end());
  return excluded;
}

/// Adds the tokens that a rule wants behind the first `count` candidates of a row, those that are not among them;
/// `log_probability` says a token's. `excluded` is sorted. Returns how many there are then.
template <class LogProbability>
size_t append_wanted(const CandidateRules& rules, std::span<const int32_t> excluded, LogProbability&& log_probability,
                     std::span<Candidate> candidates, size_t count) {
  if (rules.only_wanted) count = 0;
  for (const int32_t token : rules.wanted) {
    const auto same = [&](const Candidate& c) { return c.token == token; };
    const auto there = candidates.first(count);
    if (std::any_of(there.begin(), there.end(), same)) continue;
    if (!rules.only_wanted && std::binary_search(excluded.begin(), excluded.end(), token)) continue;
    if (const double value = log_probability(token); std::isfinite(value)) candidates[count++] = {token, value};
  }
  return count;
}

}  // namespace attune
