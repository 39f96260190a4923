#include "attune/generate/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace attune {

Beam::Beam(const BeamSearchOptions& options, const SentenceConstraints& constraints, int64_t source_tokens,
           int64_t limit)
    : options_(options),
      prefix_(constraints.prefix),
      required_(constraints.required),
      source_tokens_(source_tokens),
      limit_(limit),
      groups_(static_cast<size_t>(options.generation.beam_groups)),
      tokens_{options.special.bos},
      parents_{0} {
  Live first{.phrases = required_.begin()};
  if (options.generation.coverage_penalty > 0) first.coverage.assign(static_cast<size_t>(source_tokens), 0);
  for (Group& group : groups_) group.live = {first};
}

bool Beam::has_rules() const {
  const GenerationConfig& g = options_.generation;
  return static_cast<size_t>(length_) < prefix_.size() || !required_.empty() || !options_.banned.empty() ||
         g.no_repeat_ngram_size > 0 || length_ < g.min_length;
}

const Beam::Live& Beam::in_row(int64_t row) const {
  for (const Group& group : groups_)
    for (const Live& live : group.live)
      if (live.row == row) return live;
  fail<ShapeError>("beam search: no hypothesis in row {}", row);
}

std::vector<int32_t> Beam::past(int64_t row) const {
  return hypothesis(in_row(row).node).tokens;
}

CandidateRules Beam::rules(int64_t row) const {
  const GenerationConfig& g = options_.generation;
  CandidateRules rules;
  if (static_cast<size_t>(length_) < prefix_.size()) {
    rules.wanted = {prefix_[static_cast<size_t>(length_)]};
    rules.only_wanted = true;
    return rules;
  }
  if (length_ < g.min_length) rules.excluded.push_back(options_.special.eos);
  if (!options_.banned.empty() || g.no_repeat_ngram_size > 0) {
    const std::vector<int32_t> tokens = past(row);
    append_banned(options_.banned, tokens, rules.excluded);
    append_repeats(g.no_repeat_ngram_size, tokens, rules.excluded);
  }
  if (!required_.empty()) {
    const Live& live = in_row(row);
    rules.wanted = required_.next(live.phrases);
    rules.wanted.push_back(options_.special.eos);
    if (!required_.complete(live.phrases)) rules.excluded.push_back(options_.special.eos);
  }
  return rules;
}

// Whether a rule says that what is finished will do. Nothing is added then, and nothing changes that.
bool Beam::stopped(const Group& group) const {
  const GenerationConfig& g = options_.generation;
  if (group.live.empty()) return true;
  if (g.early_stopping == EarlyStopping::bound || static_cast<int64_t>(group.finished.size()) < wanted()) return false;
  const double enough = static_cast<double>(width()) * (g.early_stopping == EarlyStopping::first ? 1 : g.patience);
  return static_cast<double>(group.finished_count) >= enough;
}

// Whether nothing that lives can get above the results: log probabilities are at most 0 and only fall, the divisor only
// grows, and coverage costs at least nothing. What lives still costs later groups its tokens.
bool Beam::settled(const Group& group) const {
  if (static_cast<int64_t>(group.finished.size()) < wanted()) return false;
  double best = -std::numeric_limits<double>::infinity();
  for (const Live& live : group.live) best = std::max(best, live.log_probability);
  return best / options_.generation.length_divisor(limit_) <= group.finished.back().score;
}

bool Beam::done() const {
  return length_ == limit_ || std::all_of(groups_.begin(), groups_.end(),
                                          [&](const Group& group) { return stopped(group) || settled(group); });
}

// Twice the beam is enough: at most one extension of each live hypothesis ends it, so that a full beam is left to live
// on. With required phrases every bank has to have its own.
std::vector<Beam::Extension> Beam::ranked(const Group& group, const StepResult& step) const {
  std::vector<Extension> extensions;
  for (const Live& live : group.live) {
    for (const Candidate& c : step.candidates[static_cast<size_t>(live.row)]) {
      const auto taken = taken_.find(c.token);
      const double times = taken == taken_.end() ? 0 : taken->second;
      const double sum = live.log_probability + c.log_probability;
      extensions.push_back({&live, c, sum, sum - options_.generation.diversity_penalty * times});
    }
  }
  const auto most = required_.empty() ? static_cast<size_t>(2 * width()) : extensions.size();
  const auto count = static_cast<std::ptrdiff_t>(std::min(extensions.size(), most));
  std::partial_sort(extensions.begin(), extensions.begin() + count, extensions.end(),
                    [](const Extension& a, const Extension& b) {
                      return std::tuple(-a.rank_value, a.candidate.token, a.parent) <
                             std::tuple(-b.rank_value, b.candidate.token, b.parent);
                    });
  extensions.resize(static_cast<size_t>(count));
  return extensions;
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
  const std::vector<Extension> extensions = ranked(group, step);
  Group next{.live = {}, .finished = std::move(group.finished), .finished_count = group.finished_count};
  if (required_.empty()) {
    keep_likeliest(extensions, step, next);
  } else {
    keep_by_bank(extensions, step, next);
  }
  if (groups_.size() > 1)
    for (const Live& live : next.live) ++taken_[nodes_[static_cast<size_t>(live.node)].token];
  group = std::move(next);
}

void Beam::keep_likeliest(const std::vector<Extension>& ranked, const StepResult& step, Group& group) {
  const auto beam = static_cast<size_t>(width());
  for (size_t rank = 0; rank < ranked.size() && group.live.size() < beam; ++rank) {
    if (!ends(ranked[rank])) {
      group.live.push_back(extend(ranked[rank], step));
    } else if (rank < beam) {
      finish(ranked[rank], step, group);
    }
  }
}

// The banks take turns, the one that has the most of the phrases first, so that each gets its share of the beam and
// what one leaves goes to the others: Post and Vilar 2018, section 3. Only what has all of them may end.
void Beam::keep_by_bank(const std::vector<Extension>& ranked, const StepResult& step, Group& group) {
  std::vector<std::vector<const Extension*>> banks(static_cast<size_t>(required_.tokens()) + 1);
  for (const Extension& e : ranked) {
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

double Beam::score(double log_probability, const std::vector<float>& coverage) const {
  double covered = 0;
  for (const float c : coverage) covered += std::log(std::clamp(static_cast<double>(c), 1e-10, 1.0));
  return log_probability / options_.generation.length_divisor(length_) + options_.generation.coverage_penalty * covered;
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

void Beam::finish(const Extension& e, const StepResult& step, Group& group) {
  ++group.finished_count;
  const double value = score(e.log_probability, coverage_after(*e.parent, step));
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
  std::vector<Hypothesis> finished;
  std::vector<std::pair<int64_t, Hypothesis>> unfinished;  // with its bank
  for (const Group& group : groups_) {
    finished.insert(finished.end(), group.finished.begin(), group.finished.end());
    if (length_ < limit_) continue;
    for (const Live& live : group.live) {
      Hypothesis h = hypothesis(live.node);
      h.log_probability = live.log_probability;
      h.score = score(live.log_probability, live.coverage);
      unfinished.emplace_back(required_.bank(live.phrases), std::move(h));
    }
  }
  std::stable_sort(finished.begin(), finished.end(), worse);
  std::stable_sort(unfinished.begin(), unfinished.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second.score) > std::pair(b.first, b.second.score);
  });
  for (auto& [bank, h] : unfinished) finished.push_back(std::move(h));
  add(finished);
  return result;
}

}  // namespace attune
