#pragma once
// The most probable next tokens.

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

/// The candidates of each row, in one array whose memory the next step uses again.
class CandidateLists {
 public:
  size_t size() const { return counts_.size(); }  // rows
  std::span<const Candidate> operator[](size_t row) const { return {all_.data() + row * room_, counts_[row]}; }
  std::span<Candidate> operator[](size_t row) { return {all_.data() + row * room_, counts_[row]}; }

  /// Makes `rows` rows without candidates, each with room for `room` of them.
  void reset(size_t rows, size_t room) {
    room_ = room;
    if (all_.size() < rows * room) all_.resize(rows * room);
    counts_.assign(rows, 0);
  }
  /// All the room of a row; set_count() says how much of it is used.
  std::span<Candidate> room(size_t row) { return {all_.data() + row * room_, room_}; }
  void set_count(size_t row, size_t count) { counts_[row] = count; }

 private:
  size_t room_ = 0;
  std::vector<Candidate> all_;
  std::vector<size_t> counts_;
};

/// Rules for one row.
struct CandidateRules {
  std::vector<int32_t> excluded = {};  // in addition to the tokens that are excluded in every row
  std::vector<int32_t> wanted = {};    // appended to the most probable ones, in this order, unless already among them
  bool only_wanted = false;            // the candidates are `wanted` alone, and none of them is excluded
  bool forced = false;                 // with only_wanted: they cost nothing, their log probability is 0
};

/// Which candidates of a row top_candidates() returns.
struct CandidateQuery {
  int64_t count = 1;                       // how many of the most probable
  std::span<const int32_t> excluded = {};  // ascending
  bool renormalize = false;                // whether excluded tokens lose their share of the probability
  const CandidateRules* rules = nullptr;   // null: none; where they ask for `only_wanted`, nothing is renormalised
  /// These tokens, each once, first become less probable: their logits are divided by `penalty` where they are
  /// positive, and multiplied by it elsewhere. Source: Keskar et al. 2019.
  std::span<const int32_t> penalized = {};
  double penalty = 1;
};

/// The first `size` tokens of row `row` of logits [rows, at least size], float32 or float64.
struct CandidateRow {
  const Tensor& logits;
  int64_t row, size;
};

/// A row, what is asked of it, and where the answer goes.
struct CandidateJob {
  CandidateRow row;
  CandidateQuery query;
  std::span<Candidate> room;  // for `count` and the wanted tokens
  int64_t found = 0;          // written: how many there are, see below
};

/// Writes the most probable tokens of each row into its room, in descending order, equal ones by ascending id. Excluded
/// tokens are left out, but keep their share of the probability unless the query renormalises; tokens of probability 0
/// are left out too, so there may be fewer than `count`. `found` is how many there are, or -1 if the row is no
/// distribution: a logit is NaN or +infinity, or all are minus infinity. All rows are on one device and have one dtype;
/// a row has one job. Wanted and penalized tokens are below the row's size. On the CPU this runs in the caller's
/// thread: the caller divides the jobs among its threads. Other devices do all jobs of a call at once.
void top_candidates(Cpu, std::span<CandidateJob> jobs);
void top_candidates(Plain, std::span<CandidateJob> jobs);
void top_candidates(Cuda, std::span<CandidateJob> jobs);

/// Returns the excluded tokens of a row, ascending: those of the query, or `merged`, which is filled if rules add some.
inline std::span<const int32_t> excluded_of(const CandidateQuery& query, std::vector<int32_t>& merged) {
  if (query.rules == nullptr || query.rules->excluded.empty()) return query.excluded;
  merged.assign(query.excluded.begin(), query.excluded.end());
  merged.insert(merged.end(), query.rules->excluded.begin(), query.rules->excluded.end());
  std::sort(merged.begin(), merged.end());
  return merged;
}

/// Whether excluded tokens become impossible before the probabilities of the row are formed.
inline bool renormalizes(const CandidateQuery& query) {
  return query.renormalize && (query.rules == nullptr || !query.rules->only_wanted);
}

/// Appends the wanted tokens that are not among the first `count` candidates of a row. `log_probability` takes a token;
/// `excluded` is ascending. Returns the new number of candidates.
template <class LogProbability>
size_t append_wanted(const CandidateRules& rules, std::span<const int32_t> excluded, LogProbability&& log_probability,
                     std::span<Candidate> candidates, size_t count) {
  if (rules.only_wanted) count = 0;
  for (const int32_t token : rules.wanted) {
    const auto same = [&](const Candidate& c) { return c.token == token; };
    const auto there = candidates.first(count);
    if (std::any_of(there.begin(), there.end(), same)) continue;
    if (!rules.only_wanted && std::binary_search(excluded.begin(), excluded.end(), token)) continue;
    if (const double value = rules.forced ? 0 : log_probability(token); std::isfinite(value))
      candidates[count++] = {token, value};
  }
  return count;
}

}  // namespace attune
