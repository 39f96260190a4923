#pragma once
// The likeliest next tokens.

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

/// Which candidates are looked for.
struct CandidateQuery {
  int64_t count = 1;                      // the likeliest
  std::span<const int32_t> excluded;      // rising
  const CandidateRules* rules = nullptr;  // or none
};

/// Writes into `room` the `count` likeliest of the first `size` tokens of row `row` of logits [rows, at least size],
/// likeliest first and equal ones by lower id; returns how many these are. Tokens in `excluded` are left out but keep
/// their share of the probability, and so are those of probability 0, so that there may be fewer. Needs room for
/// min(count, size) and for all that the rules want. The answer depends on that row alone. Throws ShapeError, and
/// NumericError, naming the row, where there is no distribution: a logit is NaN or infinite, or all are minus infinity.
size_t top_candidates(const Tensor& logits, int64_t row, int64_t size, const CandidateQuery& query,
                      std::span<Candidate> room);

/// On the logits of a row, as in Keskar et al. 2019: those of `tokens` are divided by `penalty` where they are
/// positive, and multiplied where not. A token that is named twice is penalised twice.
void penalize_tokens(const Tensor& logits, int64_t row, std::span<const int32_t> tokens, double penalty);

}  // namespace attune
