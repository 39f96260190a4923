#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attune/nn/mixture_of_experts.h"

namespace attune {

/// Balances the load of a model's experts in one update. While it lives, each mixture of experts adds here how many
/// tokens of the recorded forward passes chose each of its experts, and the balance loss takes part in the gradient.
/// One thread at a time may train the model.
class ExpertBalance {
 public:
  explicit ExpertBalance(Module& model);
  ~ExpertBalance();
  ExpertBalance(const ExpertBalance&) = delete;
  ExpertBalance& operator=(const ExpertBalance&) = delete;

  /// Sets the factor of the balance loss of the next forward passes: their share of the update.
  void set_loss_weight(double weight) { loss_weight_ = weight; }
  double loss_weight() const { return loss_weight_; }
  /// Called by mixture `index` with the number of choices of each of its experts.
  void add(size_t index, std::span<const int64_t> counts);

  /// The counts of all mixtures, one after the other in the order of visit(). The caller adds up those of several ranks
  /// before it passes them to the functions below.
  const std::vector<int64_t>& counts() const { return counts_; }
  /// In mixtures with a bias_rate: lowers the choice bias of experts with more tokens than the mean by this rate, and
  /// raises that of experts with fewer. Source: DeepSeek-AI 2024, "DeepSeek-V3", section 2.1.2; Wang et al. 2024.
  void move_biases(std::span<const int64_t> counts) const;
  /// The largest number of tokens that an expert got, over the mean of its mixture; 0 without experts.
  double imbalance(std::span<const int64_t> counts) const;

 private:
  std::vector<MixtureOfExperts*> mixtures_;
  std::vector<size_t> first_;  // where the counts of each mixture begin in counts_, and the end of the last
  std::vector<int64_t> counts_;
  double loss_weight_ = 1;
};

}  // namespace attune
