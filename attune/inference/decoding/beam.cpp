#include "attune/inference/decoding/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/base/fail.h"

namespace attune {

Beam::Beam(const BeamSearchOptions& options, const SentenceConstraints& constraints, std::vector<int32_t> prompt,
           int64_t source_tokens, int64_t limit)
    : options_(options),
      special_(options),
      prompt_(std::move(prompt)),
      prefix_(constraints.prefix),
      required_(constraints.required),
      source_tokens_(source_tokens),
      limit_(limit),
      most_divisor_(options.generation.length_divisor(limit)),
      groups_(static_cast<size_t>(options.generation.beam_groups)),
      tokens_{special_.start},
      parents_{0} {
  Live first{.phrases = required_.begin()};
  if (options.generation.coverage_penalty > 0) first.coverage.assign(static_cast<size_t>(source_tokens), 0);
  for (Group& group : groups_) group.live = {first};
  if (const int64_t forced = options.generation.forced_first_token; forced >= 0)
    prefix_.insert(prefix_.begin(), static_cast<int32_t>(forced));
}

bool Beam::rules_read_text() const {
  return !options_.banned.empty() || !options_.generation.suppressed_phrases.empty() ||
         options_.generation.no_repeat_ngram_size > 0;
}

bool Beam::has_rules() const {
  const GenerationConfig& g = options_.generation;
  return static_cast<size_t>(length_) < prefix_.size() || !required_.empty() || rules_read_text() ||
         length_ < g.min_length || (at_begin() && !g.suppressed_at_begin.empty()) ||
         (g.forced_last_token >= 0 && length_ + 1 == limit_);
}

const Beam::Live& Beam::in_row(int64_t row) const {
  for (const Group& group : groups_)
    for (const Live& live : group.live)
      if (live.row == row) return live;
  fail<ShapeError>("beam search: no hypothesis in row {}", row);
}

std::vector<int32_t> Beam::text(int64_t row) const {
  std::vector<int32_t> tokens = prompt_;
  const std::vector<int32_t> output = hypothesis(in_row(row).node).tokens;
  tokens.insert(tokens.end(), output.begin(), output.end());
  return tokens;
}

CandidateRules Beam::rules(int64_t row) const {
  const GenerationConfig& g = options_.generation;
  CandidateRules rules;
  const bool may_end = required_.empty() || required_.complete(in_row(row).phrases);
  if (g.forced_last_token >= 0 && length_ + 1 == limit_ && may_end)
    return {.wanted = {static_cast<int32_t>(g.forced_last_token)}, .only_wanted = true, .forced = true};
  if (static_cast<size_t>(length_) < prefix_.size())
    return {.wanted = {prefix_[static_cast<size_t>(length_)]},
            .only_wanted = true,
            .forced = length_ == 0 && g.forced_first_token >= 0};
  const auto exclude = [&](const auto& tokens) {
    rules.excluded.insert(rules.excluded.end(), tokens.begin(), tokens.end());
  };
  if (at_begin()) exclude(g.suppressed_at_begin);
  if (length_ < g.min_length) exclude(special_.ends);
  if (rules_read_text()) {
    const std::vector<int32_t> tokens = text(row);
    append_banned(options_.banned, tokens, rules.excluded);
    append_banned(g.suppressed_phrases, tokens, rules.excluded);
    append_repeats(g.no_repeat_ngram_size, tokens, rules.excluded);
  }
  if (!required_.empty()) {
    const Live& live = in_row(row);
    rules.wanted = required_.next(live.phrases);
    rules.wanted.insert(rules.wanted.end(), special_.ends.begin(), special_.ends.end());
    if (!required_.complete(live.phrases)) exclude(special_.ends);
  }
  return rules;
}

// Whether the search of a group has ended: no hypothesis is live, or its rule for early stopping holds. It then gets no
// more results.
bool Beam::stopped(const Group& group) const {
  const GenerationConfig& g = options_.generation;
  if (group.live.empty()) return true;
  const bool bound = g.early_stopping == EarlyStopping::bound, heuristic = g.early_stopping == EarlyStopping::heuristic;
  if (g.beam_size == 1) return !group.finished.empty();  // greedy search
  if (bound || static_cast<int64_t>(group.finished.size()) < wanted()) return false;
  if (heuristic) return best_of(group) / g.length_divisor(length_) <= group.finished.back().score;
  const double enough = static_cast<double>(width()) * (g.early_stopping == EarlyStopping::first ? 1 : g.patience);
  return static_cast<double>(group.finished_count) >= enough;
}

// Whether no continuation of a hypothesis with this log probability can score above the results: the log probability is
// at most 0 and only falls, the divisor only grows, and the coverage penalty is at most 0.
bool Beam::hopeless(const Group& group, double log_probability) const {
  return static_cast<int64_t>(group.finished.size()) == wanted() &&
         log_probability / most_divisor_ <= group.finished.back().score;
}

// Whether no live hypothesis can become a result. They stay live all the same: their tokens cost later groups
// something.
bool Beam::settled(const Group& group) const {
  return hopeless(group, best_of(group));
}

double Beam::best_of(const Group& group) {
  double best = -std::numeric_limits<double>::infinity();
  for (const Live& live : group.live) best = std::max(best, live.log_probability);
  return best;
}

bool Beam::done() const {
  return length_ == limit_ || std::all_of(groups_.begin(), groups_.end(),
                                          [&](const Group& group) { return stopped(group) || settled(group); });
}

// Ranks the likeliest extensions: as many as the beam, and as many again for each token that ends an output. A live
// hypothesis has only one extension for each such token, so that a full beam of others is left. With required phrases
// all extensions are ranked: every bank needs its own.
void Beam::rank(const std::vector<Live>& lives, const StepResult& step) {
  ranked_.clear();
  for (const Live& live : lives) {
    for (const Candidate& c : step.candidates[static_cast<size_t>(live.row)]) {
      const double sum = live.log_probability + c.log_probability;
      ranked_.push_back({&live, c, sum, sum});
      if (taken_.empty()) continue;
      const auto taken = taken_.find(c.token);
      if (taken != taken_.end()) ranked_.back().rank_value -= options_.generation.diversity_penalty * taken->second;
    }
  }
  const auto most = required_.empty() ? static_cast<size_t>(width()) * (1 + special_.ends.size()) : ranked_.size();
  const size_t count = std::min(ranked_.size(), most);
  std::partial_sort(ranked_.begin(), ranked_.begin() + static_cast<std::ptrdiff_t>(count), ranked_.end(),
                    [](const Extension& a, const Extension& b) {
                      if (a.rank_value != b.rank_value) return a.rank_value > b.rank_value;
                      if (a.candidate.token != b.candidate.token) return a.candidate.token < b.candidate.token;
                      return a.parent < b.parent;
                    });
  ranked_.resize(count);
}

void Beam::advance(const StepResult& step) {
  for (Group& group : groups_)
    if (stopped(group)) group.live.clear();
  ++length_;
  taken_.clear();
  for (Group& group : groups_) advance_group(group, step);
  number_rows();
}

void Beam::advance_group(Group& group, const StepResult& step) {
  before_.clear();
  before_.swap(group.live);  // where the extensions have their parents
  ended_.assign(before_.size(), false);
  rank(before_, step);
  if (ranked_.empty()) {
    for (const Live& live : before_) group.dead_ends.push_back(unfinished(live, length_ - 1));
  } else if (required_.empty()) {
    keep_likeliest(step, group);
  } else {
    keep_by_bank(step, group);
  }
  if (groups_.size() > 1)
    for (const Live& live : group.live) ++taken_[nodes_[static_cast<size_t>(live.node)].token];
}

void Beam::keep_likeliest(const StepResult& step, Group& group) {
  const auto beam = static_cast<size_t>(width());
  for (size_t rank = 0; rank < ranked_.size() && group.live.size() < beam; ++rank) {
    if (!ends(ranked_[rank])) {
      group.live.push_back(extend(ranked_[rank], step));
    } else if (rank < beam) {
      finish(ranked_[rank], step, group);
    }
  }
  // Drops hypotheses that cannot become results. Not with groups, where the tokens of a hypothesis cost later groups
  // something, nor with the other rules, which count the finished hypotheses.
  if (groups_.size() > 1 || options_.generation.early_stopping != EarlyStopping::bound) return;
  while (!group.live.empty() && hopeless(group, group.live.back().log_probability)) group.live.pop_back();
}

// The banks take turns, the one that has the most of the phrases first, so that each gets its share of the beam and
// what one leaves goes to the others: Post and Vilar 2018, section 3. Only what has all of them may end.
void Beam::keep_by_bank(const StepResult& step, Group& group) {
  std::vector<std::vector<const Extension*>> banks(static_cast<size_t>(required_.tokens()) + 1);
  for (const Extension& e : ranked_) {
    PhraseProgress phrases = e.parent->phrases;
    if (!ends(e)) required_.push(phrases, e.candidate.token);
    banks[static_cast<size_t>(required_.bank(phrases))].push_back(&e);
  }
  const auto beam = static_cast<size_t>(width());
  for (size_t rank = 0; rank < std::min(beam, banks.back().size()); ++rank)
    if (ends(*banks.back()[rank])) finish(*banks.back()[rank], step, group);
  std::erase_if(banks.back(), [&](const Extension* e) { return ends(*e); });
  std::vector<size_t> next(banks.size(), 0);
  for (bool any = true; any && group.live.size() < beam;) {
    any = false;
    for (size_t b = banks.size(); b-- > 0 && group.live.size() < beam;) {
      if (next[b] == banks[b].size()) continue;
      any = true;
      group.live.push_back(extend(*banks[b][next[b]++], step));
    }
  }
}

std::vector<float> Beam::coverage_after(const Live& parent, const StepResult& step) const {
  std::vector<float> coverage = parent.coverage;
  for (size_t i = 0; i < coverage.size(); ++i)
    coverage[i] += step.attention[static_cast<size_t>(parent.row) * step.stride + i];
  return coverage;
}

int32_t Beam::aligned(int32_t row, const StepResult& step) const {
  if (!options_.alignments || source_tokens_ == 0) return -1;
  const auto weights =
      step.attention.subspan(static_cast<size_t>(row) * step.stride, static_cast<size_t>(source_tokens_));
  return static_cast<int32_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
}

Beam::Live Beam::extend(const Extension& e, const StepResult& step) {
  nodes_.push_back({.token = e.candidate.token,
                    .before = e.parent->node,
                    .aligned = aligned(e.parent->row, step),
                    .log_probability = e.candidate.log_probability});
  Live live{.node = static_cast<int32_t>(nodes_.size()) - 1,
            .row = e.parent->row,
            .log_probability = e.log_probability,
            .coverage = coverage_after(*e.parent, step),
            .phrases = e.parent->phrases};
  required_.push(live.phrases, e.candidate.token);
  return live;
}

double Beam::score(double log_probability, const std::vector<float>& coverage, int64_t length) const {
  double covered = 0;
  for (const float c : coverage) covered += std::log(std::clamp(static_cast<double>(c), 1e-10, 1.0));
  const double divisor = options_.generation.length_divisor(std::max<int64_t>(1, length));
  return log_probability / divisor + options_.generation.coverage_penalty * covered;
}

Hypothesis Beam::hypothesis(int32_t node) const {
  Hypothesis h;
  for (int32_t n = node; n >= 0; n = nodes_[static_cast<size_t>(n)].before) {
    const Node& at = nodes_[static_cast<size_t>(n)];
    h.tokens.push_back(at.token);
    h.token_log_probabilities.push_back(at.log_probability);
    if (options_.alignments) h.alignment.push_back(at.aligned);
  }
  std::reverse(h.tokens.begin(), h.tokens.end());
  std::reverse(h.token_log_probabilities.begin(), h.token_log_probabilities.end());
  std::reverse(h.alignment.begin(), h.alignment.end());
  return h;
}

Beam::Unfinished Beam::unfinished(const Live& live, int64_t length) const {
  Hypothesis h = hypothesis(live.node);
  h.log_probability = live.log_probability;
  h.score = score(live.log_probability, live.coverage, length);
  return {.bank = required_.bank(live.phrases), .hypothesis = std::move(h)};
}

// A hypothesis ends once. With several eos tokens the likeliest comes first; another would give the same output again.
void Beam::finish(const Extension& e, const StepResult& step, Group& group) {
  const auto parent = static_cast<size_t>(e.parent - before_.data());
  if (ended_[parent]) return;
  ended_[parent] = true;
  ++group.finished_count;
  const double value = score(e.log_probability, coverage_after(*e.parent, step), length_);
  if (static_cast<int64_t>(group.finished.size()) == wanted() && value <= group.finished.back().score) return;
  Hypothesis h = hypothesis(e.parent->node);
  h.token_log_probabilities.push_back(e.candidate.log_probability);
  h.log_probability = e.log_probability;
  h.score = value;
  h.finished = true;
  const auto worse = [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; };
  group.finished.insert(std::upper_bound(group.finished.begin(), group.finished.end(), h, worse), std::move(h));
  if (static_cast<int64_t>(group.finished.size()) > wanted()) group.finished.pop_back();
}

void Beam::number_rows() {
  tokens_.clear();
  parents_.clear();
  for (Group& group : groups_) {
    for (Live& live : group.live) {
      parents_.push_back(live.row);
      tokens_.push_back(nodes_[static_cast<size_t>(live.node)].token);
      live.row = static_cast<int32_t>(tokens_.size()) - 1;
    }
  }
}

std::vector<Hypothesis> Beam::hypotheses() const {
  std::vector<Hypothesis> result;
  const auto worse = [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; };
  const auto add = [&](const std::vector<Hypothesis>& more) {
    for (const Hypothesis& h : more) {  // groups may find the same
      const auto same = [&](const Hypothesis& r) { return r.finished == h.finished && r.tokens == h.tokens; };
      if (static_cast<int64_t>(result.size()) < options_.n_best && std::none_of(result.begin(), result.end(), same))
        result.push_back(h);
    }
  };
  std::vector<Hypothesis> all;
  std::vector<Unfinished> cut, dead_ends;  // cut off by the length limit; where no token could follow
  for (const Group& group : groups_) {
    all.insert(all.end(), group.finished.begin(), group.finished.end());
    dead_ends.insert(dead_ends.end(), group.dead_ends.begin(), group.dead_ends.end());
    if (length_ < limit_) continue;
    for (const Live& live : group.live) cut.push_back(unfinished(live, length_));
  }
  for (auto* some : {&cut, &dead_ends})
    std::stable_sort(some->begin(), some->end(), [](const Unfinished& a, const Unfinished& b) {
      return std::pair(a.bank, a.hypothesis.score) > std::pair(b.bank, b.hypothesis.score);
    });
  // Those that lack a required phrase come last whatever their scores.
  const auto lacking = std::ranges::find_if(cut, [&](const Unfinished& u) { return u.bank < required_.tokens(); });
  const auto ranked_alike = options_.generation.rank_unfinished ? lacking : cut.begin();
  const auto take = [&](auto begin, auto end) {
    for (; begin != end; ++begin) all.push_back(std::move(begin->hypothesis));
  };
  take(cut.begin(), ranked_alike);
  std::stable_sort(all.begin(), all.end(), worse);
  take(ranked_alike, cut.end());
  take(dead_ends.begin(), dead_ends.end());
  add(all);
  return result;
}

}  // namespace attune
