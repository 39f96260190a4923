#include "attune/nn/expert_balance.h"

#include <algorithm>
#include <numeric>

#include "attune/nn/for_each_part.h"

namespace attune {

ExpertBalance::ExpertBalance(Module& model) {
  for_each_part<MixtureOfExperts>(model, [&](MixtureOfExperts& mixture) { mixtures_.push_back(&mixture); });
  first_ = {0};
  for (size_t i = 0; i < mixtures_.size(); ++i) {
    mixtures_[i]->set_balance(this, i);
    first_.push_back(first_.back() + static_cast<size_t>(mixtures_[i]->experts()));
  }
  counts_.assign(first_.back(), 0);
}

ExpertBalance::~ExpertBalance() {
  for (MixtureOfExperts* mixture : mixtures_) mixture->set_balance(nullptr, 0);
}

void ExpertBalance::add(size_t index, std::span<const int64_t> counts) {
  for (size_t e = 0; e < counts.size(); ++e) counts_[first_[index] + e] += counts[e];
}

void ExpertBalance::move_biases(std::span<const int64_t> counts) const {
  for (size_t i = 0; i < mixtures_.size(); ++i)
    mixtures_[i]->move_bias(counts.subspan(first_[i], first_[i + 1] - first_[i]));
}

double ExpertBalance::imbalance(std::span<const int64_t> counts) const {
  double largest = 0;
  for (size_t i = 0; i < mixtures_.size(); ++i) {
    const auto own = counts.subspan(first_[i], first_[i + 1] - first_[i]);
    const auto all = static_cast<double>(std::accumulate(own.begin(), own.end(), int64_t{0}));
    if (all > 0)
      largest = std::max(largest, static_cast<double>(std::ranges::max(own)) * static_cast<double>(own.size()) / all);
  }
  return largest;
}

}  // namespace attune
