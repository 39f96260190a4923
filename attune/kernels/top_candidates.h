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

/// Which candidates of a row are looked for.
struct CandidateQuery {
  int64_t count = 1;                       // the likeliest
  std::span<const int32_t> excluded = {};  // rising
  const CandidateRules* rules = nullptr;   // or none
};

/// The first `size` tokens of row `row` of logits [rows, at least size], float32 or float64.
struct CandidateRow {
  const Tensor& logits;
  int64_t row, size;
};

/// Writes into `room`, which is large enough for `count` and what the rules want, the likeliest tokens of a row,
/// likeliest first and equal ones by lower id. Those that are excluded are left out but keep their share of the
/// probability, and so are those of probability 0, so that there may be fewer. Returns how many there are, or -1 where
/// the row has no distribution: a logit is NaN or infinite, or all are minus infinity.
int64_t top_candidates(Cpu, const CandidateRow& row, const CandidateQuery& query, std::span<Candidate> room);
int64_t top_candidates(Plain, const CandidateRow& row, const CandidateQuery& query, std::span<Candidate> room);

/// As in Keskar et al. 2019: the logits of `tokens` in a row are divided by `penalty` where they are positive, else
/// multiplied.
void penalize_tokens(Cpu, const CandidateRow& row, std::span<const int32_t> tokens, double penalty);
void penalize_tokens(Plain, const CandidateRow& row, std::span<const int32_t> tokens, double penalty);

/// The tokens that a row may not have, rising: those of the query, or, where its rules add some, those in `merged`.
inline std::span<const int32_t> excluded_of(const CandidateQuery& query, std::vector<int32_t>& merged) {
  if (query.rules == nullptr || query.rules->excluded.empty()) return query.excluded;
  merged.assign(query.excluded.begin(), query.excluded.end());
  merged.insert(merged.end(), query.rules->excluded.begin(), query.rules->excluded.end());
  std::sort(merged.begin(), merged.end());
  return merged;
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
