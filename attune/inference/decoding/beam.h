#pragma once
// The search for the outputs of one sentence, see beam_search().

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "attune/inference/decoding/beam_search.h"
#include "attune/inference/decoding/phrases.h"
#include "attune/inference/decoding/top_candidates.h"

namespace attune {

/// What one step of the model returns for the rows of a sentence.
struct StepResult {
  const CandidateLists& candidates;  // of each row
  /// Attention of each row to the tokens of the source; row r begins at r * stride. Empty where it is not wanted.
  std::span<const float> attention = {};
  size_t stride = 0;
};

/// The hypotheses of one sentence. Each is a row of the model's cache; rows are counted from the first row of the
/// sentence. With groups, several hypotheses begin in one row.
class Beam {
 public:
  /// `options` has to outlive the beam. An output continues `prompt`, and has at most `limit` tokens, eos included.
  Beam(const BeamSearchOptions& options, const SentenceConstraints& constraints, std::vector<int32_t> prompt,
       int64_t source_tokens, int64_t limit);

  int64_t rows() const { return static_cast<int64_t>(tokens_.size()); }
  /// The last token of each row, which the model reads next.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  /// The row, as numbered before the last step, that each row continues.
  const std::vector<int32_t>& parents() const { return parents_; }

  bool has_rules() const;
  CandidateRules rules(int64_t row) const;
  /// The prompt and the row's output so far.
  std::vector<int32_t> text(int64_t row) const;

  void advance(const StepResult& step);
  bool done() const;
  std::vector<Hypothesis> hypotheses() const;

 private:
  bool rules_read_text() const;

  // A token of a hypothesis; hypotheses with the same beginning share it.
  struct Node {
    int32_t token = -1;
    int32_t before = -1;   // the node of the token before, or -1
    int32_t aligned = -1;  // the source token that had the most attention, or -1
    double log_probability = 0;
  };
  struct Live {
    int32_t node = -1;
    int32_t row = 0;
    double log_probability = 0;
    std::vector<float> coverage = {};  // with a coverage penalty: of each source token
    PhraseProgress phrases = {};
  };
  struct Extension {
    const Live* parent;
    Candidate candidate;
    double log_probability;  // of the whole
    double rank_value;       // the same, less what earlier groups cost it
  };
  struct Unfinished {
    int64_t bank;
    Hypothesis hypothesis;
  };
  struct Group {
    std::vector<Live> live;
    std::vector<Hypothesis> finished;        // the best, best first
    int64_t finished_count = 0;              // with those that were not among the best
    std::vector<Unfinished> dead_ends = {};  // the last live ones, where no token could follow any of them
  };

  /// Whether the next token is the first one that is not forced.
  bool at_begin() const { return length_ == (options_.generation.forced_first_token >= 0 ? 1 : 0); }
  bool ends(const Extension& e) const { return special_.ends_with(e.candidate.token); }
  int64_t width() const { return options_.generation.beam_size / options_.generation.beam_groups; }
  // How many finished hypotheses a group keeps.
  int64_t wanted() const {
    const bool all = options_.generation.early_stopping == EarlyStopping::heuristic;
    return all ? width() : std::min(options_.n_best, width());
  }
  bool stopped(const Group& group) const;
  bool settled(const Group& group) const;
  static double best_of(const Group& group);  // the log probability of its likeliest live hypothesis
  bool hopeless(const Group& group, double log_probability) const;
  void rank(const std::vector<Live>& lives, const StepResult& step);
  void advance_group(Group& group, const StepResult& step);
  void keep_likeliest(const StepResult& step, Group& group);
  void keep_by_bank(const StepResult& step, Group& group);
  Live extend(const Extension& extension, const StepResult& step);
  void finish(const Extension& extension, const StepResult& step, Group& group);
  std::vector<float> coverage_after(const Live& parent, const StepResult& step) const;
  int32_t aligned(int32_t row, const StepResult& step) const;
  double score(double log_probability, const std::vector<float>& coverage, int64_t length) const;
  Hypothesis hypothesis(int32_t node) const;
  Unfinished unfinished(const Live& live, int64_t length) const;
  void number_rows();
  const Live& in_row(int64_t row) const;

  const BeamSearchOptions& options_;
  const SearchTokens special_;
  std::vector<int32_t> prompt_;
  std::vector<int32_t> prefix_;  // with a forced first token in front
  RequiredPhrases required_;
  int64_t source_tokens_;
  int64_t limit_;
  double most_divisor_;  // length_divisor(limit_)
  int64_t length_ = 0;   // tokens of each live hypothesis
  std::vector<Node> nodes_;
  std::vector<Group> groups_;
  std::unordered_map<int32_t, int32_t> taken_;  // how often earlier groups have taken a token in this step
  std::vector<int32_t> tokens_, parents_;
  std::vector<Extension> ranked_;  // of the group at work, likeliest first
  std::vector<Live> before_;       // its live hypotheses before the step
  std::vector<bool> ended_;        // of each of these: whether an eos has ended it
};

}  // namespace attune
