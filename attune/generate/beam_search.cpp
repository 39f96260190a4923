#include "attune/generate/beam_search.h"

#include <algorithm>
#include <span>
#include <tuple>

#include "attune/autograd/graph.h"
#include "attune/generate/top_candidates.h"

namespace attune {
namespace {

// A hypothesis that may still grow, and the row of its sentence that it goes on from.
struct Live {
  std::vector<int32_t> tokens;
  double log_probability = 0;
  int32_t parent = 0;
};

struct Extension {
  int32_t parent;
  int32_t token;
  double log_probability;
};

// The search for one sentence.
class Beam {
 public:
  Beam(const BeamSearchOptions& options, int64_t limit) : options_(options), limit_(limit), live_(1) {}

  const std::vector<Live>& live() const { return live_; }
  bool done() const;
  /// One step: candidates[i] are the next tokens of live()[i].
  void advance(std::span<const std::vector<Candidate>> candidates);
  std::vector<Hypothesis> hypotheses() const;

 private:
  std::vector<Extension> best_extensions(std::span<const std::vector<Candidate>> candidates) const;
  void finish(const Extension& extension);

  const BeamSearchOptions& options_;
  int64_t limit_;                     // of steps, that is of tokens with eos
  int64_t length_ = 0;                // tokens of each live hypothesis
  std::vector<Live> live_;            // likeliest first
  std::vector<Hypothesis> finished_;  // the best n_best, best first
};

bool Beam::done() const {
  if (live_.empty() || length_ == limit_) return true;
  if (static_cast<int64_t>(finished_.size()) < options_.n_best) return false;
  // Log probabilities are at most 0 and only fall, and the divisor only grows.
  return live_.front().log_probability / options_.generation.length_divisor(limit_) <= finished_.back().score;
}

// Twice the beam: at most one extension of each live hypothesis ends it, so that a full beam is left to live on.
std::vector<Extension> Beam::best_extensions(std::span<const std::vector<Candidate>> candidates) const {
  std::vector<Extension> extensions;
  for (size_t i = 0; i < live_.size(); ++i) {
    for (const Candidate& c : candidates[i])
      extensions.push_back({static_cast<int32_t>(i), c.token, live_[i].log_probability + c.log_probability});
  }
  const auto count = std::min(extensions.size(), static_cast<size_t>(2 * options_.generation.beam_size));
  std::partial_sort(extensions.begin(), extensions.begin() + static_cast<std::ptrdiff_t>(count), extensions.end(),
                    [](const Extension& a, const Extension& b) {
                      return std::tuple(-a.log_probability, a.token, a.parent) <
                             std::tuple(-b.log_probability, b.token, b.parent);
                    });
  extensions.resize(count);
  return extensions;
}

void Beam::advance(std::span<const std::vector<Candidate>> candidates) {
  const auto beam = static_cast<size_t>(options_.generation.beam_size);
  const std::vector<Extension> extensions = best_extensions(candidates);
  ++length_;
  std::vector<Live> next;
  for (size_t rank = 0; rank < extensions.size() && next.size() < beam; ++rank) {
    const Extension& e = extensions[rank];
    if (e.token == options_.special.eos) {
      if (rank < beam) finish(e);
      continue;
    }
    next.push_back({live_[static_cast<size_t>(e.parent)].tokens, e.log_probability, e.parent});
    next.back().tokens.push_back(e.token);
  }
  live_ = std::move(next);
}

void Beam::finish(const Extension& extension) {
  Hypothesis h{.tokens = live_[static_cast<size_t>(extension.parent)].tokens,
               .log_probability = extension.log_probability,
               .score = extension.log_probability / options_.generation.length_divisor(length_),
               .finished = true};
  const auto worse = [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; };
  finished_.insert(std::upper_bound(finished_.begin(), finished_.end(), h, worse), std::move(h));
  if (static_cast<int64_t>(finished_.size()) > options_.n_best) finished_.pop_back();
}

std::vector<Hypothesis> Beam::hypotheses() const {
  std::vector<Hypothesis> result = finished_;
  for (const Live& live : live_) {
    if (static_cast<int64_t>(result.size()) >= options_.n_best) break;
    result.push_back({.tokens = live.tokens,
                      .log_probability = live.log_probability,
                      .score = live.log_probability / options_.generation.length_divisor(length_),
                      .finished = false});
  }
  return result;
}

std::vector<int32_t> never_produced(const SpecialIds& special) {
  std::vector<int32_t> ids = {special.bos};
  if (special.pad != special.eos) ids.push_back(special.pad);
  return ids;
}

void check_id(const char* field, int32_t id, int64_t vocab) {
  if (id < 0 || id >= vocab) fail<ConfigError>("{} = {}: is outside the target vocabulary of {}", field, id, vocab);
}

}  // namespace

void BeamSearchOptions::validate(int64_t target_vocab) const {
  generation.validate();
  if (n_best < 1 || n_best > generation.beam_size)
    fail<ConfigError>("n_best = {}: needs a number from 1 to beam_size = {}", n_best, generation.beam_size);
  check_id("pad", special.pad, target_vocab);
  check_id("bos", special.bos, target_vocab);
  check_id("eos", special.eos, target_vocab);
  if (special.bos == special.eos) fail<ConfigError>("bos = {}: is eos too", special.bos);
}

std::vector<std::vector<Hypothesis>> beam_search(const Transformer& model, const PackedTokens& source,
                                                 const BeamSearchOptions& options) {
  options.validate(model.config().target_vocab);
  const NoGrad no_grad;
  const std::vector<int32_t> excluded = never_produced(options.special);
  std::vector<Beam> beams;
  std::vector<size_t> active;  // sentences that are not done; the cache holds their live hypotheses, in this order
  for (int64_t i = 0; i < source.sequences.count(); ++i) {
    const int64_t longest = options.generation.longest_output(source.sequences.length(i));
    beams.emplace_back(options, std::min(longest, model.config().longest_sequence()));
    active.push_back(static_cast<size_t>(i));
  }
  if (beams.empty()) return {};

  KvCache cache = model.start(model.encode(source), source.sequences);
  std::vector<int32_t> tokens(beams.size(), options.special.bos);
  while (!active.empty()) {
    const Tensor logits = model.step(tokens, cache);
    const auto candidates = top_candidates(logits, 2 * options.generation.beam_size, excluded);
    std::vector<size_t> still_active;
    std::vector<int32_t> parents;
    tokens.clear();
    size_t row = 0;
    for (const size_t sentence : active) {
      Beam& beam = beams[sentence];
      const size_t rows = beam.live().size();
      beam.advance(std::span(candidates).subspan(row, rows));
      if (!beam.done()) {
        still_active.push_back(sentence);
        for (const Live& live : beam.live()) {
          parents.push_back(static_cast<int32_t>(row) + live.parent);
          tokens.push_back(live.tokens.back());
        }
      }
      row += rows;
    }
    cache.select(parents);
    active = std::move(still_active);
  }

  std::vector<std::vector<Hypothesis>> result;
  result.reserve(beams.size());
  for (const Beam& beam : beams) result.push_back(beam.hypotheses());
  return result;
}

}  // namespace attune
