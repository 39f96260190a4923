#include "attune/data/lexicon.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "attune/base/check.h"
#include "attune/base/fail.h"

namespace attune {
namespace {

std::span<const int32_t> without_eos(const std::vector<int32_t>& ids) {
  return std::span(ids).first(ids.empty() ? 0 : ids.size() - 1);
}

void check_ids(const char* side, std::span<const int32_t> ids, int64_t vocab) {
  for (const int32_t id : ids)
    if (id < 0 || id >= vocab) fail<DataError>("lexicon: {} token {} is outside the vocabulary of {}", side, id, vocab);
}

// The probabilities of the pairs that occur, sorted by source and then by target.
class PairTable {
 public:
  PairTable(const std::vector<ParallelExample>& examples, int64_t source_vocab, int64_t most_pairs)
      : null_(static_cast<int32_t>(source_vocab)) {
    constexpr size_t kBuffered = size_t{1} << 22;
    std::vector<uint64_t> keys, fresh;
    const auto merge = [&] {
      std::sort(fresh.begin(), fresh.end());
      fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
      std::vector<uint64_t> all;
      std::set_union(keys.begin(), keys.end(), fresh.begin(), fresh.end(), std::back_inserter(all));
      keys = std::move(all);
      fresh.clear();
      if (static_cast<int64_t>(keys.size()) > most_pairs)
        fail<DataError>("lexicon: more than {} pairs of tokens occur together, take fewer sentences", most_pairs);
    };
    for (const ParallelExample& e : examples) {
      for_each_pair(e, [&](int32_t source, int32_t target) {
        fresh.push_back(static_cast<uint64_t>(source) << 32 | static_cast<uint32_t>(target));
      });
      if (fresh.size() >= kBuffered) merge();
    }
    merge();
    begin_.resize(static_cast<size_t>(source_vocab) + 2);
    for (const uint64_t key : keys) {
      targets_.push_back(static_cast<int32_t>(key & 0xFFFFFFFF));
      ++begin_[(key >> 32) + 1];
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    probability_.assign(keys.size(), 1.0);  // alike to begin with: only the ratios of one target count
  }

  template <class F>
  void for_each_pair(const ParallelExample& e, F&& f) const {
    for (const int32_t target : without_eos(e.target)) {
      for (const int32_t source : without_eos(e.source)) f(source, target);
      f(null_, target);
    }
  }

  void iterate(const std::vector<ParallelExample>& examples) {
    std::vector<double> count(targets_.size(), 0.0);
    std::vector<size_t> places;
    for (const ParallelExample& e : examples) {
      for (const int32_t target : without_eos(e.target)) {
        places.clear();
        double sum = 0;
        const auto visit = [&](int32_t source) {
          places.push_back(place(source, target));
          sum += probability_[places.back()];
        };
        for (const int32_t source : without_eos(e.source)) visit(source);
        visit(null_);
        for (const size_t p : places) count[p] += sum > 0 ? probability_[p] / sum : 0;
      }
    }
    for (size_t s = 0; s + 1 < begin_.size(); ++s) {
      double sum = 0;
      for (size_t p = begin_[s]; p < begin_[s + 1]; ++p) sum += count[p];
      for (size_t p = begin_[s]; p < begin_[s + 1]; ++p) probability_[p] = sum > 0 ? count[p] / sum : 0;
    }
  }

  std::vector<int32_t> best(size_t source, size_t count) const {
    std::vector<size_t> places(begin_[source + 1] - begin_[source]);
    std::iota(places.begin(), places.end(), begin_[source]);
    std::stable_sort(places.begin(), places.end(),
                     [&](size_t a, size_t b) { return probability_[a] > probability_[b]; });
    places.resize(std::min(places.size(), count));
    std::vector<int32_t> targets;
    for (const size_t p : places) targets.push_back(targets_[p]);
    return targets;
  }

 private:
  size_t place(int32_t source, int32_t target) const {
    const auto s = static_cast<size_t>(source);
    const auto at = std::lower_bound(targets_.begin() + static_cast<std::ptrdiff_t>(begin_[s]),
                                     targets_.begin() + static_cast<std::ptrdiff_t>(begin_[s + 1]), target);
    return static_cast<size_t>(at - targets_.begin());
  }

  int32_t null_;               // the empty source word
  std::vector<size_t> begin_;  // where each source token begins in the lists below
  std::vector<int32_t> targets_;
  std::vector<double> probability_;
};

}  // namespace

void LexiconOptions::validate() const {
  check_range<int64_t>("iterations", iterations, 1, 100);
  check_range<int64_t>("best", best, 1, 1 << 16);
  check_range<int64_t>("most_pairs", most_pairs, 1, int64_t{1} << 32);
}

std::vector<std::vector<int32_t>> learn_lexicon(const std::vector<ParallelExample>& examples, int64_t source_vocab,
                                                int64_t target_vocab, const LexiconOptions& options) {
  options.validate();
  for (const ParallelExample& e : examples) {
    check_ids("source", e.source, source_vocab);
    check_ids("target", e.target, target_vocab);
  }
  PairTable table(examples, source_vocab, options.most_pairs);
  for (int64_t i = 0; i < options.iterations; ++i) table.iterate(examples);
  std::vector<std::vector<int32_t>> lexicon;
  for (size_t s = 0; s < static_cast<size_t>(source_vocab); ++s)
    lexicon.push_back(table.best(s, static_cast<size_t>(options.best)));
  return lexicon;
}

std::vector<int32_t> frequent_targets(const std::vector<ParallelExample>& examples, int64_t target_vocab,
                                      int64_t count) {
  std::vector<int64_t> times(static_cast<size_t>(target_vocab), 0);
  for (const ParallelExample& e : examples) {
    check_ids("target", e.target, target_vocab);
    for (const int32_t id : without_eos(e.target)) ++times[static_cast<size_t>(id)];
  }
  std::vector<int32_t> order;
  for (size_t id = 0; id < times.size(); ++id)
    if (times[id] > 0) order.push_back(static_cast<int32_t>(id));
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return times[static_cast<size_t>(a)] > times[static_cast<size_t>(b)]; });
  order.resize(std::min(order.size(), static_cast<size_t>(std::max<int64_t>(count, 0))));
  return order;
}

}  // namespace attune
